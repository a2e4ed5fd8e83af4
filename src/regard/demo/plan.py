"""What the main job consists of: independent jobs, each the work of one process.

A job's numbers depend on its own description alone, never on which process runs it or when, so
any order and any interruption give the same results.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from regard.errors import InputError, explain

__all__ = ["ATTENTIONS", "WORDS", "Job", "Plan"]

ATTENTIONS = ("none", "bahdanau", "dot", "general")
"""What the copy experiment compares unless asked for others."""

WORDS = ("PSYCHOTHERAPEUTIC", "PHYSICIST", "NATIONHOOD", "WRECKED")
"""Held-out words whose alignment is shown: silent letters, two letters for one sound."""

# About how many CPU seconds a thousand steps take, to start the longest jobs first and to
# guess the time left. Nothing else depends on it.
_COST = {"none": 40.0, "bahdanau": 65.0, "dot": 55.0, "general": 55.0, "concat": 350.0}
_COST_LETTERS = {"minute": 80.0, "quick": 12.0}


@dataclass(frozen=True)
class Job:
    """One model to train and to score.

    Attributes
    ----------
    name : str
        Names its files.
    title : str
        For progress.
    cost : float
        A guess, in CPU seconds.
    work : dict
        What :mod:`regard.demo.work` needs to know, JSON values only.
    """

    name: str
    title: str
    cost: float
    work: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """Everything that decides the results.

    Parameters
    ----------
    seed : int
        The first seed; the copy models use `seeds` of them in a row.
    seeds : int
        At least 1; 3 or more say something about spread.
    attentions : tuple of str
        Kinds of attention in the copy experiment, ``none`` the baseline.
    steps : int
        Training steps of each copy model.
    longest : int
        Longest sequence in training.
    lengths : tuple of int
        Where accuracy is measured; those above `longest` are extrapolation.
    sequences : int
        Fresh sequences for each length.
    shown_length : int
        Of the sequence whose alignments are drawn.
    letters : {"minute", "quick"}
        Preset of the letters-to-sounds model.
    test_words : int
        Words it is scored on, the first of the test list; 0 for all.

    Raises
    ------
    InputError
        A value is outside its range.
    """

    seed: int = 0
    seeds: int = 3
    attentions: tuple[str, ...] = ATTENTIONS
    steps: int = 1000
    longest: int = 80
    lengths: tuple[int, ...] = (5, 10, 20, 40, 80, 120, 160)
    sequences: int = 1000
    shown_length: int = 20
    letters: str = "minute"
    test_words: int = 0

    def __post_init__(self) -> None:
        known = set(_COST)
        for name, fits, expected in (
            ("seed", 0 <= self.seed < 2**31, "from 0 to 2**31 - 1"),
            ("seeds", self.seeds >= 1, "at least 1"),
            (
                "attentions",
                bool(self.attentions) and set(self.attentions) <= known,
                "known kinds",
            ),
            ("steps", self.steps >= 1, "at least 1"),
            ("longest", self.longest >= 1, "at least 1"),
            ("lengths", bool(self.lengths) and min(self.lengths) >= 1, "lengths of at least 1"),
            ("sequences", self.sequences >= 1, "at least 1"),
        ):
            if not fits:
                raise InputError(
                    explain(
                        f"demo: `{name}` is refused",
                        expected=expected,
                        got=repr(getattr(self, name)),
                    )
                )

    @classmethod
    def quick(cls, seed: int = 0, seeds: int = 1) -> "Plan":
        """Return a plan of well under a minute, to see that everything works."""
        return cls(
            seed=seed,
            seeds=seeds,
            steps=220,
            longest=15,
            lengths=(5, 10, 15, 20),
            sequences=100,
            shown_length=10,
            letters="quick",
            test_words=500,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        form = asdict(self)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in form.items()}

    def jobs(self) -> list[Job]:
        """Return the jobs, the longest first: that wastes least at the end."""
        found = [self._letters()]
        for seed in range(self.seed, self.seed + self.seeds):
            found += [self._copy(attention, seed) for attention in self.attentions]
        return sorted(found, key=lambda job: -job.cost)

    def _copy(self, attention: str, seed: int) -> Job:
        work = {
            "kind": "copy",
            "attention": attention,
            "seed": seed,
            "steps": self.steps,
            "longest": self.longest,
            "lengths": list(self.lengths),
            "sequences": self.sequences,
            "shown_length": self.shown_length if seed == self.seed else 0,
        }
        cost = _COST[attention] * self.steps / 1000 * (self.longest + 8) / 88
        return Job(f"copy-{attention}-{seed}", f"copy, {attention}, seed {seed}", cost, work)

    def _letters(self) -> Job:
        work = {
            "kind": "letters",
            "preset": self.letters,
            "seed": self.seed,
            "test_words": self.test_words,
            "words": list(WORDS),
        }
        return Job("letters", "letters to sounds", _COST_LETTERS[self.letters], work)
