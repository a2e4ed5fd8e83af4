"""An aligner in both directions, on one corpus: its passes, and what it then believes."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.aligner.bitext import Bitext
from regard.aligner.direction import Direction
from regard.aligner.lexicon import Lexicon, Prior
from regard.aligner.settings import AlignerSettings
from regard.aligner.spelling import alike

__all__ = ["Aligner", "Believed"]

_COUNTED = 0.01
"""Expected counts below are taken for none, which is what the digamma function makes of them: a
lexicon is then as small as what it knows."""


class Believed(NamedTuple):
    """What both directions believe of one sentence pair, as (T_dec, T_enc) both.

    Attributes
    ----------
    forward : (T_dec, T_enc)
        How likely each target word was made by each source word; rows sum to at most 1, the
        rest is that no source word made it.
    backward : (T_dec, T_enc)
        How likely each source word was made by each target word; columns sum to at most 1.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]


class Aligner:
    """Two directions that share a corpus's words.

    Parameters
    ----------
    bitext : Bitext
    settings : AlignerSettings
    frequencies : (source, target), optional
        How often each word stood in the text that was learned from; by default the bitext.
    """

    def __init__(
        self,
        bitext: Bitext,
        settings: AlignerSettings,
        *,
        frequencies: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.bitext = bitext
        self.settings = settings
        self.frequencies = bitext.frequencies() if frequencies is None else frequencies
        s, t = bitext.pair_source, bitext.pair_target
        likeness = torch.zeros(len(s), dtype=torch.float64)
        if settings.spelling:
            first = [bitext.source.words[n] for n in s[1:].tolist()]
            second = [bitext.target.words[n] for n in t[1:].tolist()]
            likeness[1:] = torch.from_numpy(alike(first, second))
        prior = Prior(settings.sparsity, settings.spelling)
        # What was never counted is taken to have been there once.
        source, target = (
            _longer(found, len(words)).clamp_min(1)
            for found, words in zip(
                self.frequencies, (bitext.source, bitext.target), strict=True
            )
        )
        self.forward = Direction(
            Lexicon(prior, s, t, likeness, target, len(source)), empty=settings.empty
        )
        self.backward = Direction(
            Lexicon(prior, t, s, likeness, source, len(target)), empty=settings.empty
        )

    @property
    def directions(self) -> dict[str, Direction]:
        """Both, by name."""
        return {"forward": self.forward, "backward": self.backward}

    def learn(
        self, epoch: int, *, chain: bool, between: Callable[[float], None] = lambda share: None
    ) -> float:
        """Pass over the corpus once and learn from it.

        Parameters
        ----------
        epoch : int
            From 0; with the seed it decides the order of the batches.
        chain : bool
            Whether choices depend on the one before.
        between : callable
            Is called after each batch with the share of the pass that is done.

        Returns
        -------
        likelihood : float
            In nats a word, of both directions together, before the lexicons learned.
        """
        agree = self.settings.agree and epoch > 0  # at first there is nothing to agree on
        size = len(self.bitext.pair_source)
        counts = [torch.zeros(size, dtype=torch.float64) for _ in range(2)]
        empty = [torch.zeros_like(d.lexicon.empty) for d in self.directions.values()]
        total, words = 0.0, 0
        order = np.random.default_rng([self.settings.seed, epoch])
        for done, number in enumerate(order.permutation(len(self.bitext.batches)), 1):
            batch = self.bitext.batches[number]
            turned = batch.turned()
            forward, first = self.forward.posteriors(batch, chain=chain, learn=True)
            backward, second = self.backward.posteriors(turned, chain=chain, learn=True)
            total += first + second
            words += int((batch.source >= 0).sum() + (batch.target >= 0).sum())
            links = [forward[..., :-1], backward[..., :-1].transpose(1, 2)]
            if agree:
                links = [links[0] * links[1]] * 2
            for count, link in zip(counts, links, strict=True):
                count.index_add_(0, batch.cells.reshape(-1), link.reshape(-1).double())
            for count, found, sentence in zip(
                empty, (forward, backward), (batch.target, batch.source), strict=True
            ):
                kept = sentence >= 0
                count.index_add_(0, sentence[kept], found[..., -1][kept].double())
            between(done / len(self.bitext.batches))
        for direction, count, none in zip(self.directions.values(), counts, empty, strict=True):
            count[count < _COUNTED] = 0
            direction.lexicon.learn(count, none)
        return total / max(1, words)

    def believe(self, *, chain: bool = True) -> Iterator[tuple[int, Believed]]:
        """Yield what is believed of each sentence pair that has words on both sides.

        Yields
        ------
        place, believed : int, Believed
            Where the pair stands in the corpus; in no order.
        """
        for batch in self.bitext.batches:
            turned = batch.turned()
            forward, _ = self.forward.posteriors(batch, chain=chain, learn=False)
            backward, _ = self.backward.posteriors(turned, chain=chain, learn=False)
            both = forward[..., :-1].double().numpy(), backward[..., :-1].double().numpy()
            for row, place in enumerate(batch.places):
                s = int((batch.source[row] >= 0).sum())
                t = int((batch.target[row] >= 0).sum())
                yield place, Believed(both[0][row, :t, :s], both[1][row, :s, :t].T)

    def state(self) -> dict[str, Tensor]:
        """Return all that was learned, under names; of the lexicons what is not 0."""
        found = {
            "frequency.source": self.frequencies[0],
            "frequency.target": self.frequencies[1],
        }
        for name, direction in self.directions.items():
            lexicon = direction.lexicon
            kept = lexicon.counts > 0
            found |= {f"{name}.{key}": value for key, value in direction.state().items()}
            found |= {
                f"{name}.pairs.source": self.bitext.pair_source[kept],
                f"{name}.pairs.target": self.bitext.pair_target[kept],
                f"{name}.counts": lexicon.counts[kept],
                f"{name}.totals": lexicon.totals,
                f"{name}.empty": lexicon.empty,
            }
        return found

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take what :meth:`state` returned, of this corpus or of another one."""
        s, t = self.bitext.pair_source, self.bitext.pair_target
        seen = (state["frequency.source"], state["frequency.target"])
        unknown = (s >= len(seen[0])) | (t >= len(seen[1]))
        for name, direction in self.directions.items():
            mine = {k.removeprefix(f"{name}."): v for k, v in state.items()}
            place = self.bitext.place_of(
                {"source": mine["pairs.source"], "target": mine["pairs.target"]}
            )
            counts = torch.zeros(len(s), dtype=torch.float64)
            counts[place >= 0] = mine["counts"][place[place >= 0]]
            lexicon = direction.lexicon
            lexicon.restore(
                counts,
                _longer(mine["totals"], len(lexicon.totals)),
                _longer(mine["empty"], len(lexicon.empty)),
                unknown,
            )
            direction.load(mine)


def _longer(values: Tensor, length: int) -> Tensor:
    """Return values with zeros for the words that came later."""
    return torch.cat([values, values.new_zeros(length - len(values))])
