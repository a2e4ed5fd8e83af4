"""The masks of ``torch.nn.MultiheadAttention``, which mean the opposite: True = ignore."""

from math import prod

from jaxtyping import Bool

from regard.attention.masks.door import boolean, for_every_query, zero_or
from regard.axes import Array, checked, library, namespace
from regard.errors import BackendError, ConventionError, MaskError, ShapeError, explain

__all__ = ["from_torch_mha", "to_torch_mha"]


def from_torch_mha(
    key_padding_mask: Array | None = None,
    attn_mask: Array | None = None,
    *,
    T_dec: int,
    heads: int | None = None,
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Convert the masks of ``torch.nn.MultiheadAttention``, where True = ignore.

    Parameters
    ----------
    key_padding_mask : (*batch, T_enc), bool or float, optional
        True at padding, PyTorch's meaning in that one class. Or floats that are added to the
        scores: -inf at padding, 0 elsewhere.
    attn_mask : (T_dec, T_enc) or (batch * heads, T_dec, T_enc), bool or float, optional
        True where a query may not attend, or floats as above. With three axes, the heads of
        one example lie together: ``repeat_interleave`` lays them out so, ``repeat`` does not.
    T_dec : int
        Number of queries.
    heads : int, optional
        Number of heads; required for an `attn_mask` of three axes, without effect otherwise.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), (T_dec, T_enc) or (*batch, heads, T_dec, T_enc), bool
        True where a query may attend. It has batch axes where a mask has them, and an axis of
        heads where `attn_mask` has three axes.

    Raises
    ------
    MaskError
        A mask of integers; a float other than 0 and -inf, which is a bias and no mask; or no
        mask at all.
    ShapeError
        The masks do not fit each other, T_dec or `heads`.
    ConventionError
        An `attn_mask` of three axes without `heads`.
    BackendError
        A mask is no array, or the two are of different libraries.

    Examples
    --------
    >>> import numpy as np
    >>> from_torch_mha(np.array([[False, False, True]]), T_dec=1)
    array([[[ True,  True, False]]])
    >>> from_torch_mha(attn_mask=np.array([[0.0, -np.inf], [0.0, 0.0]]), T_dec=2)
    array([[ True, False],
           [ True,  True]])
    """
    call = "from_torch_mha"
    given = {"key_padding_mask": key_padding_mask, "attn_mask": attn_mask}
    masks = {name: mask for name, mask in given.items() if mask is not None}
    if not masks:
        raise MaskError(
            explain(f"{call}(): no mask", expected="one mask or both", got="two times None")
        )
    homes = {name: _home(call, name, mask) for name, mask in masks.items()}
    if len(set(homes.values())) > 1:
        raise BackendError(
            explain(
                f"{call}(): `attn_mask` and `key_padding_mask` are of different libraries",
                expected=f"`attn_mask` from {homes['key_padding_mask']}",
                got=f"`attn_mask` from {homes['attn_mask']}",
            )
        )
    may = {name: _torch_allows(call, name, mask) for name, mask in masks.items()}
    real, free = may.get("key_padding_mask"), may.get("attn_mask")
    if real is not None and real.ndim == 0:
        raise ShapeError(
            explain(
                f"{call}(): `key_padding_mask` has 0 axes, not at least 1",
                expected="key_padding_mask (*batch, T_enc)",
                got="key_padding_mask ()",
            )
        )
    if free is None:
        return for_every_query(real, T_dec)
    batch = None if real is None else real.shape[:-1]
    T_enc = free.shape[-1] if real is None else real.shape[-1]
    free = _by_head(free, batch, T_dec=T_dec, T_enc=T_enc, heads=heads)
    if real is None:
        return free
    shape = (*real.shape[:-1], *([heads] if free.ndim > 2 else []), T_dec, T_enc)
    xp = namespace(real)
    for _ in range(len(shape) - len(real.shape)):
        real = xp.expand_dims(real, axis=-2)
    return xp.broadcast_to(real & free, shape)


@boolean("mask")
@checked
def to_torch_mha(
    mask: Bool[Array, "*batch T_dec T_enc"], *, heads: int | None = None
) -> Bool[Array, "*rows T_dec T_enc"]:
    """Make the ``attn_mask`` of ``torch.nn.MultiheadAttention``, where True = ignore.

    Parameters
    ----------
    mask : (T_dec, T_enc), (batch, T_dec, T_enc) or (batch, heads, T_dec, T_enc), bool
        True where a query may attend.
    heads : int, optional
        Number of heads; required for a mask of three axes, which counts for all of them.

    Returns
    -------
    attn_mask : (T_dec, T_enc), or (batch * heads, T_dec, T_enc), bool
        True where a query may not attend; the heads of one example lie together. PyTorch's
        module makes NaN of a row that is True throughout;
        :class:`regard.nn.compat.MultiheadAttention` does not.

    Raises
    ------
    MaskError
        The mask is not boolean.
    ShapeError
        More than four axes, or another number of heads.
    ConventionError
        A mask of three axes without `heads`.

    Examples
    --------
    >>> import numpy as np
    >>> to_torch_mha(np.array([[[True, False]], [[True, True]]]), heads=2)
    array([[[False,  True]],
           [[False,  True]],
           [[False, False]],
           [[False, False]]])
    """
    call, xp = "to_torch_mha", namespace(mask)
    *batch, T_dec, T_enc = mask.shape
    if not batch:
        return ~mask
    if len(batch) == 1:
        if heads is None:
            raise ConventionError(
                explain(
                    f"{call}(): `heads` is missing",
                    expected="heads=..., the module's num_heads",
                    got="heads=None",
                    because="PyTorch repeats a mask by example for each head",
                )
            )
        mask = xp.expand_dims(mask, axis=1)
        mask = xp.broadcast_to(mask, (*batch, heads, T_dec, T_enc))
    elif len(batch) > 2 or (heads is not None and heads != batch[1]):
        raise ShapeError(
            explain(
                f"{call}(): `mask` does not fit",
                expected=f"mask (batch, {'heads' if heads is None else f'heads={heads}'}, "
                "T_dec, T_enc)",
                got=f"mask {tuple(mask.shape)}",
            )
        )
    return xp.reshape(~mask, (-1, T_dec, T_enc))


def _home(call: str, name: str, mask: Array) -> str:
    home = library(type(mask))
    if not home:
        raise BackendError(
            explain(
                f"{call}(): `{name}` is no array",
                expected="a boolean or floating-point array",
                got=type(mask).__name__,
            )
        )
    return home


def _torch_allows(call: str, name: str, mask: Array) -> Array:
    """Return where a mask of PyTorch's module, boolean or float, lets a query attend."""
    xp = namespace(mask)
    if xp.isdtype(mask.dtype, "bool"):
        return ~mask
    if xp.isdtype(mask.dtype, "real floating"):
        return zero_or(call, name, mask, float("-inf"))
    raise MaskError(
        explain(
            f"{call}(): `{name}` is neither boolean nor floating-point",
            expected="booleans, True = ignore, or floats, -inf = ignore",
            got=f"dtype {mask.dtype}",
            help=f"`{name} != 0` if 1 means ignore, `{name} == 0` if 1 means may attend;\n"
            f"regard.masks.from_hf_padding(...) if it came from a tokenizer",
        )
    )


def _by_head(
    may: Array, batch: tuple[int, ...] | None, *, T_dec: int, T_enc: int, heads: int | None
) -> Array:
    """Return PyTorch's `attn_mask` as (T_dec, T_enc) or (*batch, heads, T_dec, T_enc)."""
    call = "from_torch_mha"
    if may.ndim == 3 and heads is None:
        raise ConventionError(
            explain(
                f"{call}(): `heads` is missing",
                expected="heads=..., the module's num_heads",
                got="heads=None",
                because=f"`attn_mask` {tuple(may.shape)} has a first axis of batch * heads",
            )
        )
    rows = may.shape[0] if batch is None or may.ndim != 3 else prod(batch) * (heads or 1)
    fits = may.ndim in (2, 3) and tuple(may.shape[-2:]) == (T_dec, T_enc)
    if not fits or (may.ndim == 3 and (rows != may.shape[0] or rows % (heads or 1))):
        first = "batch * heads" if batch is None else f"batch * heads = {rows}"
        first += f", a multiple of heads={heads}" * (batch is None and heads is not None)
        raise ShapeError(
            explain(
                f"{call}(): `attn_mask` does not fit",
                expected=f"attn_mask (T_dec={T_dec}, T_enc={T_enc}) or ({first}, "
                f"T_dec={T_dec}, T_enc={T_enc})",
                got=f"attn_mask {tuple(may.shape)}",
            )
        )
    if may.ndim == 2:
        return may
    lead = (rows // (heads or 1),) if batch is None else batch
    return namespace(may).reshape(may, (*lead, heads, T_dec, T_enc))
