"""Masks that are made here: padding, the future, a window."""

from jaxtyping import Bool, Integer

from regard.attention.masks.door import for_every_query, known
from regard.axes import Array, checked, device_of, namespace
from regard.errors import ConventionError, MaskError, explain

__all__ = ["causal", "corner_of", "from_lengths", "from_padding_ids", "window"]


@checked
def from_lengths(
    key_lengths: Integer[Array, "*batch"], *, T_dec: int, T_enc: int
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Allow the first ``key_lengths`` keys of each example; the rest is padding.

    Parameters
    ----------
    key_lengths : (*batch,), integers
        Number of real keys, 0 to T_enc. Length 0 is allowed: such an example attends nowhere
        and its context is zero.
    T_dec, T_enc : int
        Number of queries and keys.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), bool
        The same row for every query.

    Raises
    ------
    MaskError
        A length is negative or larger than T_enc.

    Examples
    --------
    >>> import numpy as np
    >>> from_lengths(np.array([2, 3]), T_dec=1, T_enc=3)
    array([[[ True,  True, False]],
           [[ True,  True,  True]]])
    """
    xp = namespace(key_lengths)
    outside = xp.any((key_lengths < 0) | (key_lengths > T_enc))
    if known(outside):
        raise MaskError(
            explain(
                "`key_lengths` holds a length outside the keys",
                expected=f"every length within 0 .. T_enc={T_enc}",
                got=f"{int(xp.min(key_lengths))} .. {int(xp.max(key_lengths))}",
            )
        )
    positions = xp.arange(T_enc, dtype=key_lengths.dtype, device=device_of(key_lengths))
    real = positions < xp.expand_dims(key_lengths, axis=-1)  # (*batch, T_enc)
    return for_every_query(real, T_dec)


@checked
def from_padding_ids(
    ids: Integer[Array, "*batch T_enc"], pad_id: int, *, T_dec: int | None = None
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Allow every key whose token is not padding.

    Parameters
    ----------
    ids : (*batch, T_enc), integers
        Token ids of the keys.
    pad_id : int
        The id of padding. It must stand for nothing else: where it is also the end of a
        sentence, as in GPT-2's tokenizer, that end is taken for padding.
    T_dec : int, optional
        Number of queries; T_enc if left out, as in self-attention.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), bool
        The same row for every query.

    Raises
    ------
    BackendError
        `ids` is no array of integers.

    Examples
    --------
    >>> import numpy as np
    >>> from_padding_ids(np.array([[7, 5, 0]]), 0, T_dec=1)
    array([[[ True,  True, False]]])
    """
    return for_every_query(ids != pad_id, T_dec)


def causal(
    T_dec: int, T_enc: int, *, corner: str | None = None, like: Array | None = None
) -> Bool[Array, "T_dec T_enc"]:
    """Forbid the future: query t may attend keys up to its own position.

    Parameters
    ----------
    T_dec, T_enc : int
        Number of queries and keys.
    corner : {"top_left", "bottom_right"}, optional
        Which corners of query and key axis are one moment in time. ``top_left``: query t is key
        t (PyTorch's ``is_causal``). ``bottom_right``: the last query is the last key, as when a
        cache holds earlier keys. May be left out only where T_dec = T_enc, where both agree.
    like : array, optional
        Gives the library and device of the result; NumPy without it.

    Returns
    -------
    mask : (T_dec, T_enc), bool

    Raises
    ------
    ConventionError
        T_dec and T_enc differ and `corner` does not say how they are aligned.

    Examples
    --------
    >>> causal(2, 3, corner="bottom_right")
    array([[ True,  True, False],
           [ True,  True,  True]])
    """
    shift = T_enc - T_dec if corner_of(corner, T_dec, T_enc) == "bottom_right" else 0
    query, key = _positions(T_dec, T_enc, like)
    return key <= query + shift


def window(
    T_dec: int, T_enc: int, *, left: int, right: int, like: Array | None = None
) -> Bool[Array, "T_dec T_enc"]:
    """Allow query t the keys from t - left to t + right, both included.

    Parameters
    ----------
    T_dec, T_enc : int
        Number of queries and keys; query t and key t are one moment in time.
    left, right : int
        How far back and ahead, at least 0.
    like : array, optional
        Gives the library and device of the result; NumPy without it.

    Returns
    -------
    mask : (T_dec, T_enc), bool

    Raises
    ------
    ConventionError
        `left` or `right` is negative.

    Examples
    --------
    >>> window(3, 4, left=1, right=0)
    array([[ True, False, False, False],
           [ True,  True, False, False],
           [False,  True,  True, False]])
    """
    for name, reach in (("left", left), ("right", right)):
        if reach < 0:
            raise ConventionError(
                explain(f"window(): `{name}` is negative", expected="0 or more", got=str(reach))
            )
    query, key = _positions(T_dec, T_enc, like)
    return (key >= query - left) & (key <= query + right)


def corner_of(causal: str | bool | None, T_dec: int, T_enc: int) -> str:
    """Return "top_left" or "bottom_right" for what a caller said about causality.

    Raises
    ------
    ConventionError
        The word is unknown, or T_dec and T_enc differ and the caller did not say which corner.
    """
    if causal in ("top_left", "bottom_right"):
        return str(causal)
    if causal in (None, True) and T_dec == T_enc:
        return "top_left"
    choice = 'causal="top_left" or causal="bottom_right"'
    if causal in (None, True):
        raise ConventionError(
            explain(
                f"causal with T_dec={T_dec} queries and T_enc={T_enc} keys can mean two things",
                expected=choice,
                got=f"causal={causal}",
                because='"top_left" lets query t see keys 0 .. t, "bottom_right" lets the last '
                "query see every key",
            )
        )
    raise ConventionError(
        explain("`causal` has no such value", expected=choice, got=f"causal={causal!r}")
    )


def _positions(T_dec: int, T_enc: int, like: Array | None) -> tuple[Array, Array]:
    xp = namespace(like)
    query = xp.expand_dims(xp.arange(T_dec, device=device_of(like)), axis=1)
    key = xp.expand_dims(xp.arange(T_enc, device=device_of(like)), axis=0)
    return query, key
