"""The masks of Keras' attention layers: the same meaning, in other shapes."""

from jaxtyping import Bool

from regard.attention.masks.door import boolean, for_every_query
from regard.axes import Array, checked, namespace
from regard.errors import ConventionError, MaskError, ShapeError, explain

__all__ = ["from_keras"]


@boolean("value_mask", "query_mask", "attention_mask")
@checked
def from_keras(
    value_mask: Bool[Array, "*batch T_enc"] | None = None,
    query_mask: Bool[Array, "*batch T_dec"] | None = None,
    attention_mask: Bool[Array, "*batch T_dec T_enc"] | None = None,
    *,
    T_dec: int | None = None,
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Convert the masks of a Keras attention layer, where True = real token.

    The meaning is that of this package already; what changes is the shape.

    Parameters
    ----------
    value_mask : (*batch, T_enc), bool, optional
        The second of Keras' ``mask=[query_mask, value_mask]``.
    query_mask : (*batch, T_dec), bool, optional
        The first. A query that is padding may attend nowhere; Keras sets its output to zero.
    attention_mask : (*batch, T_dec, T_enc), bool, optional
        That of ``keras.layers.MultiHeadAttention``, True = may attend.
    T_dec : int, optional
        Number of queries; required where neither `query_mask` nor `attention_mask` tells it.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), bool
        True where all masks are.

    Raises
    ------
    MaskError
        A mask is not boolean, or none of them has an axis of keys.
    ShapeError
        The masks do not fit each other or T_dec.
    ConventionError
        The number of queries cannot be known.

    Examples
    --------
    >>> import numpy as np
    >>> from_keras(np.array([[True, True, False]]), np.array([[True, False]]))
    array([[[ True,  True, False],
            [False, False, False]]])
    """
    call = "from_keras"
    if value_mask is None and attention_mask is None:
        raise MaskError(
            explain(
                f"{call}(): no mask has an axis of keys",
                expected="`value_mask`, `attention_mask` or both",
                got="neither",
            )
        )
    tells = [mask.shape[-1] for mask in (query_mask,) if mask is not None]
    tells += [mask.shape[-2] for mask in (attention_mask,) if mask is not None]
    if not tells and T_dec is None:
        raise ConventionError(
            explain(
                f"{call}(): the number of queries is unknown",
                expected="T_dec=..., or `query_mask`, or `attention_mask`",
                got="`value_mask` alone",
            )
        )
    T_dec = tells[0] if T_dec is None else T_dec
    if tells and tells[0] != T_dec:
        name = "attention_mask" if query_mask is None else "query_mask"
        raise ShapeError(
            explain(
                f"{call}(): `{name}` does not fit on axis T_dec",
                expected=f"T_dec = {T_dec}, as the argument says",
                got=f"T_dec = {tells[0]}",
            )
        )
    mask = None if value_mask is None else for_every_query(value_mask, T_dec)
    if attention_mask is not None:
        mask = attention_mask if mask is None else mask & attention_mask
    return mask if query_mask is None else mask & namespace(mask).expand_dims(query_mask, -1)
