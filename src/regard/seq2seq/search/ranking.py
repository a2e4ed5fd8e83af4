r"""How hypotheses of different lengths are ranked: length and coverage penalties.

A sum of log-probabilities favours short answers. The two usual remedies divide it; GNMT's
coverage penalty adds what it costs to leave parts of the source unread.
"""

import math
from dataclasses import dataclass

from regard.axes import Array, namespace
from regard.errors import InputError, explain

__all__ = ["Ranking"]

# A source symbol that was never looked at costs 23 times the penalty, not everything.
_UNSEEN = 1e-10


@dataclass(frozen=True)
class Ranking:
    r"""The score of a hypothesis.

    .. math::
       s(Y, X) &= \frac{\log P(Y|X)}{lp(Y)} + cp(X; Y) \\
       lp(Y) &= \frac{(5 + |Y|)^\alpha}{(5 + 1)^\alpha} \\
       cp(X; Y) &= \beta \sum_i \log \min \Bigl(\sum_j p_{ij},\; 1\Bigr)

    Equation 14 of [1]_. The length :math:`|Y|` counts the end, as the attention of the step
    that answers it counts, so that an empty answer has length 1.

    Parameters
    ----------
    length : "none", "average" or float
        A number is GNMT's alpha, from 0 (none) up; the paper used 0.2 to 0.6. ``"average"``
        divides by the length itself.
    coverage : float
        GNMT's beta, from 0 (none) up; the paper used 0.2. Needs attention.

    Raises
    ------
    InputError
        A value is outside its range.

    Notes
    -----
    Only whole hypotheses are ranked so. Among those of one length, which a beam compares at
    each step, the logarithm of the probability alone decides.

    References
    ----------
    .. [1] Wu et al., "Google's Neural Machine Translation System: Bridging the Gap between
       Human and Machine Translation", 2016, section 7. arXiv:1609.08144

    Examples
    --------
    >>> Ranking(length=1.0).normaliser(7)
    2.0
    """

    length: str | float = "none"
    coverage: float = 0.0

    def __post_init__(self) -> None:
        alpha = self.length
        named = alpha in ("none", "average")
        number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
        if not named and not (number and 0 <= alpha < math.inf):  # type: ignore[operator]
            raise InputError(
                explain(
                    "Ranking(): `length` is refused",
                    expected='"none", "average", or a number from 0',
                    got=repr(alpha)[:80],
                )
            )
        if not 0 <= self.coverage < math.inf:
            raise InputError(
                explain(
                    "Ranking(): `coverage` is refused",
                    expected="a number from 0",
                    got=repr(self.coverage)[:80],
                )
            )

    @property
    def plain(self) -> bool:
        """Whether the score is the logarithm of the probability itself."""
        return self.length in ("none", 0) and not self.coverage

    def normaliser(self, length: float) -> float:
        """Return what the log-probability of a sequence is divided by.

        Parameters
        ----------
        length : int
            Symbols, the end included; from 1.
        """
        if isinstance(self.length, str):
            return 1.0 if self.length == "none" else float(max(length, 1))
        return float(((5.0 + length) / 6.0) ** self.length)

    def score(
        self, log_prob: Array, length: float, looked: Array | None, real: Array | None
    ) -> Array:
        """Score hypotheses of one length.

        Parameters
        ----------
        log_prob : (*batch,)
            Of whole sequences.
        length : int
            Their symbols, the end included.
        looked : (*batch, T_enc) or None
            Attention that each source symbol got in all steps together; read only for
            coverage.
        real : (*batch, T_enc), bool, or None
            False on padding.
        """
        score = log_prob / self.normaliser(length)
        if self.coverage and looked is not None:
            xp = namespace(looked)
            missed = xp.log(xp.clip(looked, _UNSEEN, 1.0))
            if real is not None:
                missed = xp.where(real, missed, xp.zeros_like(missed))
            score = score + self.coverage * missed.sum(-1)
        return score

    def bound(self, log_prob: Array, longest: Array) -> Array:
        """Return what no continuation of some hypotheses can score above.

        Parameters
        ----------
        log_prob : (batch, beam)
            So far; further symbols can only lower it.
        longest : (batch,)
            Symbols that a continuation may have at most, the end included: the larger the
            divisor, the better for a negative number. Coverage is at most 0.
        """
        if isinstance(self.length, str):
            if self.length == "none":
                return log_prob
            return log_prob / longest[:, None]
        return log_prob / (((5.0 + longest) / 6.0) ** self.length)[:, None]
