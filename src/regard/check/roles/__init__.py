"""Zero configuration: a contract guessed from names, words, code and runs; targets found."""

from regard.check.roles.guess import Guess, guess

__all__ = ["Guess", "guess"]
