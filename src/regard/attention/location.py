r"""Location-aware attention: scores that know where the step before attended [1]_.

.. [1] Chorowski, Bahdanau, Serdyuk, Cho and Bengio, "Attention-Based Models for Speech
   Recognition", NIPS 2015, section 2.2. arXiv:1506.07503
"""

from jaxtyping import Float

from regard.axes import Array, checked, device_of, namespace
from regard.errors import ConventionError, explain

__all__ = ["location", "location_features", "require_middle"]


@checked
def location_features(
    previous: Float[Array, "*batch T_dec T_enc"], *, F: Float[Array, "k r"]
) -> Float[Array, "*batch T_dec T_enc k"]:
    r"""Describe the surroundings of each key in the weights of the step before: equation 8.

    .. math:: f_{i,j} = (F * \alpha_{i-1})_j
       = \textstyle\sum_{n=0}^{r-1} F_n \, \alpha_{i-1,\,j-n+(r-1)/2}

    Parameters
    ----------
    previous : (*batch, T_dec, T_enc)
        Row i holds the weights of the step before step i; 0 at padding, as weights are.
    F : (k, r)
        k filters of odd width r.

    Returns
    -------
    features : (*batch, T_dec, T_enc, k)

    Raises
    ------
    ConventionError
        r is even.

    Notes
    -----
    A convolution, filters reversed, centred on the key and with zeros beyond the ends: NumPy's
    ``convolve(..., mode="same")`` for T_enc of at least r. The paper leaves these three open.
    Holds one (*batch, T_dec, T_enc, r) array.
    """
    xp, device = namespace(previous), device_of(F)
    r, T_enc = F.shape[-1], previous.shape[-1]
    require_middle("location_features", r)
    edge = xp.zeros((*previous.shape[:-1], r // 2), dtype=previous.dtype, device=device)
    padded = xp.concat([edge, previous, edge], axis=-1)
    first = xp.expand_dims(xp.arange(T_enc, device=device), axis=1)
    offset = xp.expand_dims(xp.arange(r, device=device), axis=0)
    near = xp.take(padded, xp.reshape(first + offset, (-1,)), axis=-1)
    near = xp.reshape(near, (*previous.shape, r))
    return xp.matmul(near, xp.matrix_transpose(xp.flip(F, axis=-1)))


@checked
def location(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    previous: Float[Array, "*batch T_dec T_enc"],
    W: Float[Array, "d_attn d_s"],
    V: Float[Array, "d_attn d_h"],
    U: Float[Array, "d_attn k"],
    F: Float[Array, "k r"],
    b: Float[Array, " d_attn"],
    w: Float[Array, " d_attn"],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score by content and by location: equation 9.

    .. math:: e_{i,j} = w^\top \tanh(W s_{i-1} + V h_j + U f_{i,j} + b)

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *before* the step, s_{i-1}.
    key : (*batch, T_enc, d_h)
        Encoder states.
    previous : (*batch, T_dec, T_enc)
        Row i holds the weights of the step before step i; 0 at padding, as weights are.
    W, V, U : (d_attn, d_s), (d_attn, d_h), (d_attn, k)
        Projections of queries, keys and features.
    F : (k, r)
        k filters of odd width r (:func:`location_features`).
    b, w : (d_attn,)
        Bias, and the weights of the d_attn features.

    Returns
    -------
    scores : (*batch, T_dec, T_enc)
        Within plus or minus sum(abs(w)); neither masked nor normalised.

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.
    ConventionError
        r is even.

    Notes
    -----
    The weights before are those of another step, so a sequence of steps is a loop
    (:class:`regard.nn.LocationDecoder`); this function scores steps whose predecessors are
    known. NaN in `previous` at a forbidden key would spread to its neighbours.
    """
    xp = namespace(query)
    from_query = xp.matmul(query, xp.matrix_transpose(W)) + b  # (*batch, T_dec, d_attn)
    from_key = xp.matmul(key, xp.matrix_transpose(V))  # (*batch, T_enc, d_attn)
    pairs = xp.expand_dims(from_query, axis=-2) + xp.expand_dims(from_key, axis=-3)
    where = xp.matmul(location_features(previous, F=F), xp.matrix_transpose(U))
    return xp.matmul(xp.tanh(pairs + where), w)


def require_middle(call: str, r: int) -> None:
    """Refuse filters that cannot be centred on a key.

    Raises
    ------
    ConventionError
        r is even.
    """
    if r % 2 == 0:
        raise ConventionError(
            explain(
                f"{call}(): filters of width {r} have no middle",
                expected="an odd width r",
                got=f"r={r}",
            )
        )
