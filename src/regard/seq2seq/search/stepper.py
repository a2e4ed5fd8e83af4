"""What a search asks of a model: begin, one step, and going on with chosen rows."""

from typing import Any, Protocol

from torch import Tensor

__all__ = ["Stepper"]


class Stepper(Protocol):
    """A model that can be run freely: :class:`~regard.seq2seq.model.Seq2Seq`, an ensemble."""

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        ...

    @property
    def attends(self) -> bool:
        """Whether steps return attention weights."""
        ...

    def eval(self) -> Any:
        """Turn dropout off."""
        ...

    def train(self, mode: bool = True) -> Any:
        """Turn dropout on or off."""
        ...

    def start(self, source: Tensor, source_lengths: Tensor | None = None) -> tuple[Any, Any]:
        """Encode a batch; returns memory and state, both opaque."""
        ...

    def step(
        self, previous: Tensor, memory: Any, state: Any
    ) -> tuple[Tensor, Any, Tensor | None]:
        """Return symbol scores, which the caller may write to, the next state, and weights."""
        ...

    def take(
        self, memory: Any, state: Any, rows: Tensor, *, same_sources: bool = False
    ) -> tuple[Any, Any]:
        """Go on with these rows, in this order, repeats allowed."""
        ...
