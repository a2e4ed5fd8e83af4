"""Sampling: targets drawn with the model's own probabilities."""

import numpy as np
import torch
from jaxtyping import Integer
from torch import Tensor

from regard.axes import checked
from regard.errors import InputError, explain
from regard.seq2seq.search.constraint import Constraint
from regard.seq2seq.search.follow import follow, quiet
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.limits import limits_of
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.search.stepper import Stepper

__all__ = ["sample"]


@checked
def sample(
    model: Stepper,
    source: Integer[Tensor, "batch T_enc"],
    source_lengths: Integer[Tensor, " batch"] | None = None,
    *,
    max_length: int | list[int],
    temperature: float = 1.0,
    seed: int = 0,
    numbers: list[int] | None = None,
    ranking: Ranking | None = None,
    constraint: Constraint | None = None,
    need_weights: bool = True,
) -> list[Hypothesis]:
    """Draw one target for each source.

    Parameters
    ----------
    model, source, source_lengths, max_length, ranking, constraint, need_weights
        As :func:`~regard.seq2seq.search.follow.greedy` takes them.
    temperature : float
        The scores are divided by it: below 1 the likely becomes likelier, towards 0 the search
        is greedy.
    seed : int
        From 0.
    numbers : list of int, optional
        From 0, one for each source; by default 0, 1, 2 ... With the seed they decide what is
        drawn, so the same source in another batch is answered the same.

    Returns
    -------
    hypotheses : list of Hypothesis
        In the order of the batch. Their log-probabilities are the model's, without temperature
        and constraint.

    Raises
    ------
    InputError
        A number is outside its range.
    """
    batch = source.shape[0]
    if not 0 < temperature < float("inf"):
        raise InputError(
            explain(
                "sample(): `temperature` is refused",
                expected="a positive number",
                got=repr(temperature),
            )
        )
    numbers = list(range(batch)) if numbers is None else numbers
    if seed < 0 or len(numbers) != batch or min(numbers, default=0) < 0:
        raise InputError(
            explain(
                "sample(): `seed` or `numbers` is refused",
                expected=f"a seed from 0, and {batch} numbers from 0",
                got=f"seed {seed}, {len(numbers)} numbers",
            )
        )
    shortest = constraint.shortest if constraint is not None else 0
    limits = limits_of("sample", max_length, batch, shortest)
    # Each sequence draws from a stream of its own, one number a step.
    streams = [np.random.default_rng([seed, number]) for number in numbers]

    def draw(log_probs: Tensor, rows: Tensor, step: int) -> Tensor:
        del step
        points = torch.tensor([streams[row].random() for row in rows.tolist()])
        cumulated = torch.softmax(log_probs.double() / temperature, dim=-1).cumsum(-1)
        # The first symbol whose share ends beyond the point; shares of zero are never hit.
        reach = points.to(cumulated).unsqueeze(1) * cumulated[:, -1:]
        return torch.searchsorted(cumulated, reach, right=True).squeeze(1)

    with quiet(model):
        return follow(
            model,
            source,
            source_lengths,
            limits,
            draw,
            ranking=ranking or Ranking(),
            constraint=constraint,
            need_weights=need_weights,
        )
