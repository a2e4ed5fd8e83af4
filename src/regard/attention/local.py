r"""Local attention: each query looks only at keys near one position of the source [1]_.

Positions count from 0, as key indices do. Every query has a position p_t: its own number
(local-m), or one predicted from it (local-p). The weights are a softmax over the permitted keys
within D of p_t. Local-p then multiplies them by a Gaussian around p_t **and does not normalise
again**, so its rows sum to less than 1: here, and only here, the contract of
:mod:`regard.attention.weights` is "between 0 and 1, each row sums to at most 1". A forbidden
key keeps weight exactly 0, and a row whose window holds no key is all zero.

.. [1] Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine
   Translation", EMNLP 2015, section 3.2. arXiv:1508.04025
"""

from typing import Any

from jaxtyping import Bool, Float, Integer

from regard.attention.attend import Attended, attend, clear
from regard.axes import Array, checked, device_of, namespace
from regard.errors import ConventionError, explain

__all__ = ["gaussian", "local_attend", "predicted_positions", "require_reach", "within"]


@checked
def predicted_positions(
    query: Float[Array, "*batch T_dec d_s"],
    source_lengths: Integer[Array, "*batch"],
    *,
    W_p: Float[Array, "d_p d_s"],
    v_p: Float[Array, " d_p"],
) -> Float[Array, "*batch T_dec"]:
    r"""Predict where in its source each query should look: equation 9.

    .. math:: p_t = S \, \sigma(v_p^\top \tanh(W_p s_t))

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *after* the step, s_t.
    source_lengths : (*batch,), integers
        S of each example, without padding.
    W_p, v_p : (d_p, d_s), (d_p,)
        Parameters of the predictor.

    Returns
    -------
    positions : (*batch, T_dec)
        Within 0 .. S of each example, real numbers.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.
    """
    xp = namespace(query)
    hidden = xp.tanh(xp.matmul(query, xp.matrix_transpose(W_p)))
    # tanh is the sigmoid that no large number can overflow.
    share = (xp.tanh(xp.matmul(hidden, v_p) / 2) + 1) / 2
    return share * xp.expand_dims(xp.astype(source_lengths, query.dtype), axis=-1)


@checked
def within(
    positions: Float[Array, "*batch T_dec"], *, D: float, T_enc: int
) -> Bool[Array, "*batch T_dec T_enc"]:
    """Allow each query the keys within D of its position: the window [p_t - D, p_t + D].

    Parameters
    ----------
    positions : (*batch, T_dec)
        p_t, counted from 0; real numbers are not rounded.
    D : float
        Reach to either side, above 0; the paper takes 10. What lies outside the source is left
        out, as in the paper.
    T_enc : int
        Number of keys.

    Returns
    -------
    mask : (*batch, T_dec, T_enc), bool

    Raises
    ------
    ConventionError
        D is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> within(np.array([0.0, 2.5]), D=1, T_enc=4)
    array([[ True,  True, False, False],
           [False, False,  True,  True]])
    """
    require_reach("within", D)
    return abs(_distances(positions, T_enc)) <= D


@checked
def gaussian(
    positions: Float[Array, "*batch T_dec"], *, D: float, T_enc: int
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Return the factor by which local-p favours keys near the position: equation 10.

    .. math:: \exp\left(-\frac{(i - p_t)^2}{2 \sigma^2}\right), \quad \sigma = D / 2

    Parameters
    ----------
    positions : (*batch, T_dec)
        p_t, counted from 0.
    D : float
        Reach of the window, two standard deviations; above 0.
    T_enc : int
        Number of keys.

    Returns
    -------
    factor : (*batch, T_dec, T_enc)
        Between 0 and 1; 1 only at a key exactly at p_t, exp(-2) at the window's edge.

    Raises
    ------
    ConventionError
        D is not above 0.
    """
    require_reach("gaussian", D)
    xp = namespace(positions)
    return xp.exp(-((_distances(positions, T_enc) / (D / 2)) ** 2) / 2)


@checked
def local_attend(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    value: Float[Array, "*batch T_enc d_v"] | None = None,
    *,
    D: float,
    W_p: Float[Array, "d_p d_s"] | None = None,
    v_p: Float[Array, " d_p"] | None = None,
    mask: Bool[Array, "*batch T_dec T_enc"] | None = None,
    key_lengths: Integer[Array, "*batch"] | None = None,
    **options: Any,
) -> Attended:
    r"""Attend within a window: local-p if it is given W_p and v_p, local-m without them.

    .. math::
       a_t(i) = \mathrm{align}(s_t, h_i) \exp\left(-\frac{(i - p_t)^2}{2 \sigma^2}\right)

    for local-p; for local-m, p_t = t and there is no Gaussian.

    Parameters
    ----------
    query, key, value, mask, key_lengths
        As for :func:`~regard.attention.attend.attend`. Query t is number t of its sequence. S
        of equation 9 is `key_lengths`, T_enc without it; a `mask` does not change it.
    D : float
        Reach of the window to either side, above 0.
    W_p, v_p : (d_p, d_s), (d_p,), optional
        Of the predicted position; both or neither.
    **options
        Score, its parameters and further options of :func:`~regard.attention.attend.attend`.

    Returns
    -------
    attended : Attended
        Rows of local-m sum to 1 or are all zero. Rows of local-p sum to less than 1: the
        Gaussian multiplies weights that are normalised already, and the paper leaves it at
        that.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others.
    ConventionError
        D is not above 0, or only one of W_p and v_p was given.

    Notes
    -----
    Two points that the paper leaves open: positions count from 0, so that p_t = t is the
    diagonal; and a real p_t is not rounded, so a window holds the floor(2 D) or floor(2 D) + 1
    keys within reach. All T_enc scores are computed; the window saves no work here.

    Examples
    --------
    >>> import numpy as np
    >>> states = np.array([[1.0, 0.0], [0.5, 0.5], [0.1, 0.9], [0.3, 0.3]])
    >>> local_attend(states, states, D=1).weights.round(2)
    array([[0.62, 0.38, 0.  , 0.  ],
           [0.33, 0.33, 0.33, 0.  ],
           [0.  , 0.31, 0.43, 0.26],
           [0.  , 0.  , 0.53, 0.47]])
    """
    require_reach("local_attend", D)
    if (W_p is None) != (v_p is None):
        raise ConventionError(
            explain(
                "local_attend(): `W_p` and `v_p` belong together",
                expected="both, for a predicted position (local-p), or neither (local-m)",
                got=f"`{'v_p' if W_p is None else 'W_p'}` alone",
            )
        )
    xp = namespace(query)
    T_dec, T_enc = query.shape[-2], key.shape[-2]
    batch = query.shape[:-2]
    if W_p is None:
        each = _numbers(T_dec, query)
        window = within(xp.broadcast_to(each, (*batch, T_dec)), D=D, T_enc=T_enc)
        may = window if mask is None else window & mask
        attended: Attended = attend(
            query, key, value, mask=may, key_lengths=key_lengths, **options
        )
        return attended
    lengths = key_lengths
    if lengths is None:
        lengths = xp.full(batch, T_enc, dtype=xp.int64, device=device_of(query))
    # A query that may attend nowhere can hold anything, and must not reach W_p's gradient.
    asked = query if mask is None else clear(query, xp.any(mask, axis=-1))
    asked = clear(asked, xp.broadcast_to(xp.expand_dims(lengths > 0, axis=-1), (*batch, T_dec)))
    positions = predicted_positions(asked, lengths, W_p=W_p, v_p=v_p)
    window = within(positions, D=D, T_enc=T_enc)
    may = window if mask is None else window & mask
    need_weights = options.pop("need_weights", True)
    _, weights = attend(query, key, value, mask=may, key_lengths=key_lengths, **options)
    weights = weights * gaussian(positions, D=D, T_enc=T_enc)
    value = key if value is None else value
    value = clear(value, xp.any(weights != 0, axis=-2))
    return Attended(xp.matmul(weights, value), weights if need_weights else None)


def require_reach(call: str, D: float) -> None:
    """Refuse a window without any width.

    Raises
    ------
    ConventionError
        D is not above 0.
    """
    if not D > 0:
        raise ConventionError(
            explain(f"{call}(): `D` is no reach", expected="D above 0", got=f"D={D!r}")
        )


def _distances(positions: Array, T_enc: int) -> Array:
    """Return i - p_t for every key, (*batch, T_dec, T_enc)."""
    xp = namespace(positions)
    return _numbers(T_enc, positions) - xp.expand_dims(positions, axis=-1)


def _numbers(count: int, like: Array) -> Array:
    return namespace(like).arange(count, dtype=like.dtype, device=device_of(like))
