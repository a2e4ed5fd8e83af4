"""Links by the name of a rule, from the weights of one direction or of both.

=============  ===========  ==================================================================
rule           directions   a link is
=============  ===========  ==================================================================
``argmax``     one or both  each target word's largest weight; of both directions combined by
                            ``method``
``threshold``  one or both  every weight of at least ``least`` (0.3); combined likewise
``mutual``     both         what is the largest of its row and of its column
``agreeing``   both         a geometric mean of at least ``least`` (0.3)
``itermax``    both         the mutual largest of the mean, round by round
``entropic``   both         what an optimal plan gives at least ``least`` (0.1) of its share
=============  ===========  ==================================================================
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from regard.alignment.extract import agreeing, entropic, itermax, mutual, threshold
from regard.alignment.links import Links
from regard.alignment.matrix import Alignment
from regard.alignment.symmetrize import Method, symmetrize
from regard.errors import InputError, explain

__all__ = ["RULES", "Rule", "links_by", "shifted"]

Rule = Literal["argmax", "threshold", "mutual", "agreeing", "itermax", "entropic"]
"""A rule's name, as the table above has them."""

RULES: tuple[Rule, ...] = get_args(Rule)
"""All of them."""

_BOTH: dict[str, Callable[..., Links]] = {
    "mutual": mutual,
    "agreeing": agreeing,
    "itermax": itermax,
    "entropic": entropic,
}
_LEAST = {"threshold": 0.3, "agreeing": 0.3, "entropic": 0.1}


def links_by(
    rule: Rule,
    forward: Alignment,
    backward: Alignment | None = None,
    *,
    least: float | None = None,
    method: Method = "grow-diag-final",
) -> Links:
    """Return the links of one sentence pair.

    Parameters
    ----------
    rule : str
        One of :data:`RULES`.
    forward : Alignment
        Rows are target words.
    backward : Alignment, optional
        Of a model that reads the other way round: its rows are the *source's* words.
    least : float, optional
        For threshold, agreeing and entropic; the defaults stand in the table above.
    method : str
        How argmax and threshold combine two directions, as
        :func:`~regard.alignment.symmetrize.symmetrize` does.

    Returns
    -------
    links : set of (source, target)

    Raises
    ------
    InputError
        The rule is unknown, needs both directions, or takes no ``least``.
    ShapeError
        The directions do not have the same words.
    """
    if rule not in RULES:
        raise InputError(
            explain(
                "links_by(): `rule` is unknown", expected=" or ".join(RULES), got=repr(rule)
            )
        )
    if least is not None and rule not in _LEAST:
        raise InputError(
            explain(
                f"links_by(): the rule {rule} has no least weight",
                expected=f"`least` with {', '.join(_LEAST)} only",
                got=f"least={least}",
            )
        )
    least = _LEAST.get(rule) if least is None else least
    if rule in _BOTH:
        if backward is None:
            raise InputError(
                explain(
                    f"links_by(): the rule {rule} compares two directions",
                    expected="`backward`, of a model that reads the other way round",
                    got="one direction",
                    help="argmax and threshold take one",
                )
            )
        options: dict[str, Any] = {} if least is None else {"least": least}
        return _BOTH[rule](forward.weights, backward.weights.T, **options)
    one = _of_one(rule, forward, least)
    if backward is None:
        return one
    turned = frozenset((s, t) for t, s in _of_one(rule, backward, least))
    return symmetrize(one, turned, method)


def shifted(alignment: Alignment, steps: int) -> Alignment:
    """Return the alignment in which each target word has the row of `steps` words later.

    A decoder whose row t was asked for *after* it had read word t (as every layer of a
    Transformer does) often looks at that word's translation one row late: `steps` 1 reads it
    there [1]_. Regard's own models need none: their row t is the one that wrote word t.

    Parameters
    ----------
    alignment : Alignment
    steps : int
        Negative: earlier. Words whose row would lie outside look at nothing.

    References
    ----------
    .. [1] Chen, Liu, Sun, Chen and Liu, "Accurate Word Alignment Induction from Neural Machine
       Translation", EMNLP 2020, section 3.1 (Shift-Att). arXiv:2004.14837
    """
    weights = alignment.weights * 0
    count = len(weights)
    if steps >= 0:
        weights[: max(0, count - steps)] = alignment.weights[steps:]
    else:
        weights[-steps:] = alignment.weights[:steps]
    return Alignment(weights, alignment.target, alignment.source, alignment.made_by)


def _of_one(rule: Rule, alignment: Alignment, least: float | None) -> Links:
    if rule == "argmax":
        return frozenset(alignment.links())
    assert least is not None  # threshold has a default
    return threshold(alignment.weights, least)
