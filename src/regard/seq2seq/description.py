"""What a model is, apart from its weights."""

from dataclasses import dataclass, field
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.vocab import Vocab

__all__ = ["Description"]


@dataclass(frozen=True)
class Description:
    """What a model is, apart from its weights.

    Parameters
    ----------
    model : ModelConfig
    source, target : Vocab
        Of the sizes that ``model`` names.
    longest_source, longest_target : int
        In the training data, in symbols: where to stop a target that does not end.
    made_by : dict
        JSON values: command, version, seed, data with their sha256, settings.

    Raises
    ------
    InputError
        A vocabulary's size is not the model's.
    """

    model: ModelConfig
    source: Vocab
    target: Vocab
    longest_source: int
    longest_target: int
    made_by: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side, vocab, size in (
            ("source", self.source, self.model.source_symbols),
            ("target", self.target, self.model.target_symbols),
        ):
            if len(vocab) != size:
                raise InputError(
                    explain(
                        f"Description(): the {side} vocabulary does not fit the model",
                        expected=f"{size} ids, the four reserved ones included",
                        got=f"{len(vocab)} ids",
                    )
                )
        if self.longest_source < 1 or self.longest_target < 1:
            raise InputError(
                explain(
                    "Description(): the longest source or target is refused",
                    expected="at least 1 symbol each",
                    got=f"{self.longest_source} and {self.longest_target}",
                )
            )

    def longest_answer(self, source_symbols: int) -> int:
        """Return how many symbols a target may have: generous, and growing with the source."""
        stretch = max(1.0, source_symbols / self.longest_source)
        # A model of tiny sources and long targets would else be let run for ever.
        most = self.longest_target + 4 * source_symbols
        return min(int(self.longest_target * stretch), most) + 5
