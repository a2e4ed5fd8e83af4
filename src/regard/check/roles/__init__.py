"""Zero configuration: a contract guessed from names, words, code and runs; targets found."""

from regard.check.roles.discover import Candidate, Skipped, discover
from regard.check.roles.guess import Guess, guess

__all__ = ["Candidate", "Guess", "Skipped", "discover", "guess"]
