"""The masks of Hugging Face Transformers: floats that are added, integers that count tokens."""

from typing import Any

from jaxtyping import Bool, Float, Integer

from regard.attention.masks.door import boolean, for_every_query, known, zero_or
from regard.axes import Array, checked, namespace
from regard.errors import BackendError, ConventionError, MaskError, ShapeError, explain

__all__ = ["from_hf_additive", "from_hf_padding", "to_additive"]


@checked
def from_hf_additive(
    attention_mask: Float[Array, "batch heads T_dec T_enc"],
    *,
    T_dec: int | None = None,
    heads: int | None = None,
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Convert a float mask of Hugging Face Transformers: 0 = may attend, lowest = may not.

    Parameters
    ----------
    attention_mask : (batch, 1 or heads, 1 or T_dec, T_enc)
        What a model's eager attention adds to the scores: 0, or the lowest number of its type
        (``torch.finfo(dtype).min``), or -inf. An axis of 1 counts for all heads, or queries.
    T_dec : int, optional
        Number of queries; the mask's own if left out.
    heads : int, optional
        Number of heads. Left out, the mask must be one for all heads.

    Returns
    -------
    mask : (batch, T_dec, T_enc), or (batch, heads, T_dec, T_enc) where `heads` is given, bool

    Raises
    ------
    MaskError
        The mask holds another number: it is a bias and no mask.
    ShapeError
        Not four axes, or axes other than 1 that do not fit T_dec or `heads`.
    ConventionError
        A mask by head without `heads`.
    BackendError
        The mask is no array of floats.

    Examples
    --------
    >>> import numpy as np
    >>> lowest = np.finfo(np.float32).min
    >>> from_hf_additive(np.array([[[[0, lowest], [0, 0]]]], dtype=np.float32))
    array([[[ True, False],
            [ True,  True]]])
    """
    call, xp = "from_hf_additive", namespace(attention_mask)
    batch, own_heads, own_T_dec, T_enc = attention_mask.shape
    if heads is None and own_heads != 1:
        raise ConventionError(
            explain(
                f"{call}(): `attention_mask` has a mask for each head",
                expected=f"heads={own_heads}, for a result of (batch, heads, T_dec, T_enc)",
                got="heads=None, for a result of (batch, T_dec, T_enc)",
            )
        )
    wanted = own_heads if heads is None else heads, own_T_dec if T_dec is None else T_dec
    for axis, own, size in zip(("heads", "T_dec"), (own_heads, own_T_dec), wanted, strict=True):
        if own not in (1, size):
            raise ShapeError(
                explain(
                    f"{call}(): `attention_mask` does not fit on axis {axis}",
                    expected=f"{axis} = {size}, or 1 for all",
                    got=f"attention_mask {tuple(attention_mask.shape)}",
                    because=f"{axis}={size} was given",
                )
            )
    lowest = float(xp.finfo(attention_mask.dtype).min)
    may = zero_or(call, "attention_mask", attention_mask, lowest)
    full = xp.broadcast_to(may, (batch, *wanted, T_enc))
    return full if heads is not None else full[:, 0, :, :]


@checked
def from_hf_padding(
    attention_mask: Integer[Array, "*batch T_enc"], *, T_dec: int | None = None
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Convert the ``attention_mask`` of a Hugging Face tokenizer: 1 = token, 0 = padding.

    Parameters
    ----------
    attention_mask : (*batch, T_enc), integers
        1 at tokens, 0 at padding, which may stand left or right.
    T_dec : int, optional
        Number of queries; T_enc if left out, as in self-attention.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), bool
        The same row for every query: that padding asks too is not forbidden.

    Raises
    ------
    MaskError
        A number other than 0 and 1; token ids go to :func:`from_padding_ids`.
    BackendError
        No array of integers; a boolean mask, True = token, goes to :func:`from_keras`.

    Examples
    --------
    >>> import numpy as np
    >>> from_hf_padding(np.array([[0, 1, 1]]), T_dec=1)
    array([[[False,  True,  True]]])
    """
    xp = namespace(attention_mask)
    if known(xp.any((attention_mask != 0) & (attention_mask != 1))):
        raise MaskError(
            explain(
                "from_hf_padding(): `attention_mask` holds a number other than 0 and 1",
                expected="1 at tokens and 0 at padding",
                got=f"{int(xp.min(attention_mask))} .. {int(xp.max(attention_mask))}",
                help="regard.masks.from_padding_ids(ids, pad_id) takes token ids",
            )
        )
    return for_every_query(attention_mask == 1, T_dec)


@boolean("mask")
@checked
def to_additive(
    mask: Bool[Array, "*batch T_dec T_enc"], dtype: Any, *, fill: str = "-inf"
) -> Float[Array, "*batch T_dec T_enc"]:
    """Make a float mask that is added to scores: 0 where a query may attend.

    Parameters
    ----------
    mask : (*batch, T_dec, T_enc), bool
        True where a query may attend.
    dtype
        A floating-point type of the mask's own library.
    fill : {"-inf", "lowest"}
        What stands where a query may not attend. -inf makes a weight exactly 0, and a row of
        it NaN; the lowest finite number, Hugging Face's choice, makes such a row uniform.

    Returns
    -------
    additive : (*batch, T_dec, T_enc)
        The same shape, of type `dtype`.

    Raises
    ------
    MaskError
        The mask is not boolean.
    BackendError
        `dtype` is no floating-point type.
    ConventionError
        `fill` is neither of the two.

    Examples
    --------
    >>> import numpy as np
    >>> to_additive(np.array([[True, False]]), np.float32)
    array([[  0., -inf]], dtype=float32)
    """
    xp = namespace(mask)
    if not xp.isdtype(dtype, "real floating"):
        raise BackendError(
            explain(
                "to_additive(): `dtype` is no floating-point type",
                expected="a floating-point type of the mask's library",
                got=str(dtype),
            )
        )
    if fill not in ("-inf", "lowest"):
        raise ConventionError(
            explain(
                "to_additive(): `fill` has no such value",
                expected='fill="-inf" or "lowest"',
                got=f"fill={fill!r}",
            )
        )
    zeros = xp.zeros_like(mask, dtype=dtype)
    floor = float("-inf") if fill == "-inf" else float(xp.finfo(dtype).min)
    return xp.where(mask, zeros, xp.full_like(zeros, floor))
