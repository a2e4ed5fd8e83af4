"""The settings of a training run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.schedule import DECAYS

__all__ = ["OPTIMIZERS", "TrainConfig"]

OPTIMIZERS = ("adamw", "adam")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Parameters
    ----------
    steps : int
        Batches, from 1. The learning rate's course is laid out over all of them.
    learning_rate : float
        At its highest.
    optimizer : {"adamw", "adam"}
    betas : tuple of two floats
        Of the optimizer's running averages, each 0 to below 1.
    weight_decay : float
        From 0; meant for ``adamw``.
    warm_up : int
        Steps over which the rate rises, 0 to ``steps``.
    decay : {"cosine", "linear", "constant"}
        How the rate falls afterwards.
    final_share : float
        What it falls to, as a share of ``learning_rate``; 0 to 1.
    clip : float
        Longest gradient; longer ones are shortened to it. ``inf`` for none.
    label_smoothing : float
        0 to below 1.
    evaluate_every : int
        Steps between two looks at the held-out data; 0 for one look at the end.
    patience : int
        Looks without an improvement after which the run ends; 0 for never.
    seed : int
        From 0.

    Raises
    ------
    InputError
        A value is outside its range.
    """

    steps: int = 1000
    learning_rate: float = 3e-3
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    warm_up: int = 50
    decay: str = "cosine"
    final_share: float = 0.02
    clip: float = 1.0
    label_smoothing: float = 0.0
    evaluate_every: int = 0
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checks: list[tuple[str, bool, str]] = [
            ("steps", self.steps >= 1, "at least 1"),
            ("learning_rate", 0 < self.learning_rate < float("inf"), "a positive number"),
            ("optimizer", self.optimizer in OPTIMIZERS, " or ".join(OPTIMIZERS)),
            ("betas", all(0 <= b < 1 for b in self.betas), "two numbers from 0 to below 1"),
            ("weight_decay", 0 <= self.weight_decay < float("inf"), "at least 0"),
            ("warm_up", 0 <= self.warm_up <= self.steps, f"from 0 to steps = {self.steps}"),
            ("decay", self.decay in DECAYS, " or ".join(DECAYS)),
            ("final_share", 0 <= self.final_share <= 1, "from 0 to 1"),
            ("clip", self.clip > 0, "a positive number, or inf"),
            ("label_smoothing", 0 <= self.label_smoothing < 1, "from 0 to below 1"),
            ("evaluate_every", self.evaluate_every >= 0, "at least 0"),
            ("patience", self.patience >= 0, "at least 0"),
            ("seed", 0 <= self.seed < 2**63, "from 0 to 2**63 - 1"),
        ]
        for name, fits, expected in checks:
            if not fits:
                raise InputError(
                    explain(
                        f"TrainConfig(): `{name}` is refused",
                        expected=expected,
                        got=repr(getattr(self, name)),
                    )
                )

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads."""
        return asdict(self) | {"betas": list(self.betas)}

    @classmethod
    def from_json(cls, form: Any) -> "TrainConfig":
        """Rebuild a configuration.

        Raises
        ------
        InputError
            ``form`` has other entries, or a value that is refused.
        """
        names = {field.name for field in fields(cls)}
        if not isinstance(form, Mapping) or set(form) != names:
            raise InputError(
                explain(
                    "TrainConfig.from_json(): these are no training settings",
                    expected=f"entries {', '.join(sorted(names))}",
                    got=repr(form)[:80],
                )
            )
        try:
            return cls(**{**form, "betas": tuple(form["betas"])})
        except TypeError as error:
            raise InputError(
                explain(
                    "TrainConfig.from_json(): a setting has the wrong type",
                    expected="numbers where numbers belong",
                    got=str(error),
                )
            ) from error
