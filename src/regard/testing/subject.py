"""What a caller says about an attention of their own, so that it can be judged in its words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from regard.attention import reference
from regard.errors import ConventionError, ShapeError, explain
from regard.testing.libraries import library_named

__all__ = ["Oracle", "Subject"]

Oracle = Callable[..., tuple[Any, Any]]
"""``(query, key, value, *, mask, **parameters) -> (context, weights)`` on plain lists.

One example: query ``(T_dec, d_s)``, key ``(T_enc, d_h)``, value ``(T_enc, d_v)``, mask
``(T_dec, T_enc)`` or None, parameters as nested lists; weights ``(T_dec, T_enc)`` or, with
heads, ``(heads, T_dec, T_enc)``. :func:`regard.attention.reference.attend` is one.
"""

_CHOICES: dict[str, tuple[Any, ...]] = {
    "layout": ("batch T d", "T batch d", "T d", "batch d", "d"),
    "mask": ("attend", "ignore", "lengths", None),
    "mask_axes": ("T_dec T_enc", "T_enc"),
    "weights": ("asked", "always", "never", "only"),
}
_NAMES = {"query": "query", "key": "key", "value": "value", "mask": "mask"}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An attention, and what it means by its arguments.

    The contract calls ``call(query, key, value, mask=..., need_weights=..., **parameters)``:
    `value` only if `d_v` is given, `mask` only if there is something to mask, `need_weights`
    only with ``weights="asked"``, all else as declared here. An attention with another
    signature is wrapped in a function of two lines. With `self_attention` there is one sequence
    instead of query, key and value.

    Raises
    ------
    ConventionError
        A word is not one of those a field knows, or two fields contradict each other.
    ShapeError
        A size is not a positive integer.

    Examples
    --------
    >>> from regard.testing import Subject, contract
    >>> def attention(query, key, value):
    ...     scores = query @ np.swapaxes(key, -1, -2)
    ...     e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    ...     weights = e / e.sum(axis=-1, keepdims=True)
    ...     return weights @ value, weights
    >>> subject = Subject(
    ...     call=attention, d_s=5, d_h=5, d_v=7, mask=None, weights="always", oracle="dot"
    ... )
    >>> report = contract(subject, clauses=(1, 7, 10))
    >>> print(report)
    attention (numpy, seed 0): 3 held
     1  held    weights are a distribution (unmasked only: it takes no mask)
     7  held    keys may come in any order
    10  held    agrees with the plain-list reference (in float64, float32, float16)
    """

    call: Callable[..., Any]
    """The attention. Returns the context, or the pair ``(context, weights)``."""

    d_s: int
    """Size of a query."""

    d_h: int
    """Size of a key."""

    d_v: int | None = None
    """Size of a value; None where the values are the keys and `call` takes none."""

    library: str = "numpy"
    """``numpy``, ``torch``, ``jax``, ``array-api-strict`` or ``lists``."""

    layout: str = "batch T d"
    """Axes of query, key, value and context, in order. ``T d`` is one example, ``batch d`` one
    decoder step of a batch, ``d`` one step of one example; keys always have their ``T_enc``."""

    heads: int | None = None
    """Number of heads, whose weights come as ``(batch, heads, T_dec, T_enc)``."""

    mask: str | None = "attend"
    """What True means in a boolean mask, ``attend`` or ``ignore``; ``lengths`` for an integer
    array ``(batch,)`` of how many keys are real; None where nothing can be masked."""

    mask_axes: str = "T_dec T_enc"
    """Axes of the mask behind the batch: a row for every query, or ``T_enc``, one for all."""

    float_masks: bool = False
    """Whether a mask of floating-point numbers is documented to be something else, as PyTorch's
    is added to the scores: then clause 11 does not ask for its refusal."""

    weights: str = "asked"
    """``asked``: `call` takes ``need_weights``; ``always``; ``never``; ``only``: they are all
    that is returned."""

    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Arrays of NumPy, passed to `call` by name in the subject's library and number type."""

    module: Any = None
    """A PyTorch module that `call` takes as its first argument: a copy in evaluation mode, in
    each number type. A function of the number type's name that returns one is welcome too."""

    oracle: Oracle | str | None = None
    """What it should compute: a score of :data:`regard.attention.reference.SCORES`, or a
    function (:data:`Oracle`). Without it clause 10 is not applicable."""

    alone: "Callable[[int], Subject] | None" = None
    """Head n by itself as a subject of the same query, key and value, for clause 8."""

    join: Callable[..., Any] | None = None
    """Joined contexts ``(batch, T_dec, heads * d)`` of NumPy, and the parameters by name, to
    what the subject returns: its output projection."""

    one_head: "Subject | None" = None
    """The same attention with a single head and its own `alone`, for clause 8."""

    empty: Callable[..., Any] | None = None
    """Parameters by name to the context ``(d,)`` of a query that may attend nowhere; zeros if
    None. An output projection adds its bias even there."""

    content_based: bool = True
    """Whether a weight depends on what keys hold and not on where they stand."""

    self_attention: bool = False
    """Whether query, key and value are one sequence; `call` takes it as its only array."""

    dtypes: tuple[str, ...] = ()
    """Number types it promises; those of the library if empty. The first is used throughout,
    the others in clause 10."""

    names: Mapping[str, str] = field(default_factory=dict)
    """What its errors call the query, key, value and mask, where not by these words."""

    staged: bool = False
    """Whether `call` makes several calls, of which an earlier one computes before a later one
    can see a mistake: then clause 11 does not ask what ran first."""

    device: str | None = None
    """Of PyTorch arrays."""

    name: str = ""
    """For the report; the name of `call` or of the module if empty."""

    def __post_init__(self) -> None:
        for what, choices in _CHOICES.items():
            if getattr(self, what) not in choices:
                raise _refusal(what, ", ".join(map(repr, choices)), repr(getattr(self, what)))
        for what in ("d_s", "d_h", "d_v", "heads"):
            size = getattr(self, what)
            optional = size is None and what in ("d_v", "heads")
            if not optional and (not isinstance(size, int) or size < 1):
                raise ShapeError(
                    explain(
                        f"Subject(): `{what}` is not a size",
                        expected=f"{what} as an integer of at least 1",
                        got=repr(size),
                    )
                )
        if self.library == "lists" and "batch" in self.layout:
            raise _refusal("layout", "'T d' or 'd' for lists", repr(self.layout))
        if self.self_attention and self.layout.endswith("h d"):
            raise _refusal("layout", "a layout with T for self-attention", repr(self.layout))
        if self.self_attention and self.d_s != self.d_h:
            raise _refusal("d_s", f"d_s = d_h = {self.d_h} for self-attention", str(self.d_s))
        if isinstance(self.oracle, str):
            if self.oracle not in reference.SCORES:
                known = ", ".join(map(repr, reference.SCORES))
                raise _refusal("oracle", f"{known} or a function", repr(self.oracle))
            object.__setattr__(self, "oracle", partial(reference.attend, score=self.oracle))
        promised = library_named(self.library).dtypes
        for dtype in self.dtypes:
            if dtype not in promised:
                raise _refusal("dtypes", f"some of {promised} of {self.library}", repr(dtype))
        object.__setattr__(self, "dtypes", self.dtypes or promised)
        object.__setattr__(self, "names", {**_NAMES, **self.names})
        object.__setattr__(self, "name", self.name or _name_of(self))

    @classmethod
    def of(cls, target: Any, **options: Any) -> "Subject":
        """Describe one of this package's attentions, or one with PyTorch's signature.

        Parameters
        ----------
        target : callable or module
            :func:`regard.attend`, :func:`regard.multi_head`, the calls of a single step
            (:func:`regard.dot_attention` and its sisters), a module or decoder of
            :mod:`regard.nn`, ``torch.nn.MultiheadAttention`` or a drop-in for it.
        **options
            For functions: ``score``, ``library``, ``heads``, further arguments of the function,
            and the sizes; for all: any field of :class:`Subject`.

        Returns
        -------
        subject : Subject

        Raises
        ------
        ConventionError
            It is none of these: then say in ``Subject(call=..., ...)`` how it is called.

        Examples
        --------
        >>> import regard as rg
        >>> Subject.of(rg.attend, score="general").name
        'attend, general'
        """
        from regard.testing.known import describe  # noqa: PLC0415 - it needs this class

        return describe(target, **options)


def _name_of(subject: Subject) -> str:
    if hasattr(subject.module, "parameters"):
        return type(subject.module).__name__
    return str(getattr(subject.call, "__name__", type(subject.call).__name__))


def _refusal(what: str, expected: str, got: str) -> ConventionError:
    return ConventionError(
        explain(f"Subject(): `{what}` has no such value", expected=expected, got=got)
    )
