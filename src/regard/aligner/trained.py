"""An aligner that was trained: links and beliefs for any sentence pairs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from regard.aligner.bitext import Bitext, Words
from regard.aligner.corpus import SentencePairs
from regard.aligner.links import LEAST, links_of
from regard.aligner.model import Aligner, Believed
from regard.aligner.store import About, Learned, load_about, load_learned
from regard.alignment.links import NO_WORD, Links
from regard.alignment.record import Record
from regard.errors import InputError, explain

__all__ = ["TrainedAligner"]


class TrainedAligner:
    """What a directory of ``regard align train`` holds, ready for use.

    Parameters
    ----------
    about : About
    learned : Learned
    """

    def __init__(self, about: About, learned: Learned) -> None:
        self.about = about
        self.learned = learned

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read an aligner.

        Raises
        ------
        InputError
            There is none, it is damaged, or its first pass was never finished.
        """
        directory = Path(directory)
        about = load_about(directory)
        learned = load_learned(directory, about)
        if learned is None:
            raise InputError(
                explain(
                    f"{directory}: the run in it has not finished a pass over its corpus",
                    expected="a model.safetensors",
                    got="none",
                    help="go on with `regard align train ... --resume`",
                )
            )
        return cls(about, learned)

    def believe(self, pairs: SentencePairs) -> Iterator[tuple[int, Believed]]:
        """Yield what both directions believe of each pair that has words on both sides.

        Parameters
        ----------
        pairs : SentencePairs
            Those it was trained on, or others. A pair of words of which one was never seen is
            as likely as chance, unless they are spelled alike: train on all text there is, as
            no gold links are needed.

        Yields
        ------
        place, believed : int, Believed
            Where the pair stands among `pairs`; in no order.
        """
        bitext = Bitext(pairs, Words(self.about.source), Words(self.about.target))
        seen = tuple(self.learned.tensors[f"frequency.{side}"] for side in ("source", "target"))
        aligner = Aligner(bitext, self.about.settings, frequencies=(seen[0], seen[1]))
        aligner.load(self.learned.tensors)
        yield from aligner.believe(chain=self.learned.chain)

    def links(
        self, pairs: SentencePairs, method: str = "agreeing", least: float = LEAST
    ) -> list[Links]:
        """Return the links of each pair, positions from 0; none where a side is empty.

        Parameters
        ----------
        pairs : SentencePairs
        method, least : str, float
            As :func:`regard.aligner.links.links_of` takes them.
        """
        found: list[Links] = [frozenset()] * len(pairs)
        for place, believed in self.believe(pairs):
            found[place] = links_of(believed, method, least)
        return found

    def records(
        self,
        pairs: SentencePairs,
        *,
        direction: Literal["forward", "backward"] = "forward",
        made_by: dict[str, Any] | None = None,
    ) -> list[Record]:
        """Return one direction's beliefs as records, which ``regard show`` draws.

        Parameters
        ----------
        pairs : SentencePairs
            Those with an empty side are left out.
        direction : {"forward", "backward"}
            Who looks: the target's words at the source's, or the other way round.
        made_by : mapping, optional
            Where they came from.

        Returns
        -------
        records : list of Record
            Named by the pair's number from 1. The last column is
            :data:`~regard.alignment.links.NO_WORD`.
        """
        found = {}
        for place, believed in self.believe(pairs):
            looking, looked_at = pairs.target[place], pairs.source[place]
            weights = believed.forward
            if direction == "backward":
                looking, looked_at = looked_at, looking
                weights = believed.backward.T
            rest = np.clip(1 - weights.sum(axis=1, keepdims=True), 0, None)
            weights = np.concatenate([np.clip(weights, 0, None), rest], axis=1)
            found[place] = Record(
                weights / weights.sum(axis=1, keepdims=True),
                looking,
                [*looked_at, NO_WORD],
                name=str(place + 1),
                made_by=made_by,
            )
        return [found[place] for place in sorted(found)]
