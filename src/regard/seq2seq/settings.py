"""The settings of a training run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.clock import CLOCKS
from regard.seq2seq.schedule import DECAYS

__all__ = ["OPTIMIZERS", "PRECISIONS", "TrainConfig"]

OPTIMIZERS = ("adamw", "adam")
PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Parameters
    ----------
    steps : int
        From 1. The learning rate's course is laid out over all of them.
    time_budget : float
        Seconds that the run takes, looks and saving included: it then has as many steps as fit,
        ``steps`` at most. 0 for exactly ``steps`` steps.
    clock : {"wall", "cpu"}
        What the budget is measured by.
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
    accumulate : int
        Batches that make one step, from 1. They are shared out to the processes of a run that
        has several.
    precision : {"float32", "bfloat16"}
        Of the forward pass; weights and optimizer are always float32.
    sampling : float
        Scheduled sampling: the chance that the decoder reads its own answer instead of the
        target's symbol. Rises linearly over the run from 0 to this; 0 to 1.
    evaluate_every : int
        Steps between two looks at the held-out data; 0 for one look at the end.
    looks : int
        The same for a run with a time budget: looks over the whole of it, at least 1. Fewer
        where they would take more than a fifth of the time.
    average : int
        In the end the mean of the weights of this many best looks is tried too, and taken if it
        scores better than the best one; 0 or 1 for no such trial.
    ema : float
        Looks score, and the run keeps, a running average of the weights that forgets
        ``1 - ema`` of itself at each step; 0 to below 1. 0 for the weights themselves.
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
    time_budget: float = 0.0
    clock: str = "wall"
    learning_rate: float = 3e-3
    optimizer: str = "adamw"
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    warm_up: int = 50
    decay: str = "cosine"
    final_share: float = 0.02
    clip: float = 1.0
    label_smoothing: float = 0.0
    accumulate: int = 1
    precision: str = "float32"
    sampling: float = 0.0
    evaluate_every: int = 0
    looks: int = 10
    average: int = 0
    ema: float = 0.0
    patience: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        checks: list[tuple[str, bool, str]] = [
            ("steps", self.steps >= 1, "at least 1"),
            ("time_budget", 0 <= self.time_budget < float("inf"), "a number of seconds, or 0"),
            ("clock", self.clock in CLOCKS, " or ".join(CLOCKS)),
            ("learning_rate", 0 < self.learning_rate < float("inf"), "a positive number"),
            ("optimizer", self.optimizer in OPTIMIZERS, " or ".join(OPTIMIZERS)),
            ("betas", all(0 <= b < 1 for b in self.betas), "two numbers from 0 to below 1"),
            ("weight_decay", 0 <= self.weight_decay < float("inf"), "at least 0"),
            ("warm_up", 0 <= self.warm_up <= self.steps, f"from 0 to steps = {self.steps}"),
            ("decay", self.decay in DECAYS, " or ".join(DECAYS)),
            ("final_share", 0 <= self.final_share <= 1, "from 0 to 1"),
            ("clip", self.clip > 0, "a positive number, or inf"),
            ("label_smoothing", 0 <= self.label_smoothing < 1, "from 0 to below 1"),
            ("accumulate", self.accumulate >= 1, "at least 1"),
            ("precision", self.precision in PRECISIONS, " or ".join(PRECISIONS)),
            ("sampling", 0 <= self.sampling <= 1, "from 0 to 1"),
            ("evaluate_every", self.evaluate_every >= 0, "at least 0"),
            ("looks", self.looks >= 1, "at least 1"),
            ("average", self.average >= 0, "at least 0"),
            ("ema", 0 <= self.ema < 1, "from 0 to below 1"),
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
