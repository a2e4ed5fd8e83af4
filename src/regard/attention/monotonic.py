r"""Monotonic attention: each step reads on from where the last one stopped [1]_.

While decoding, a step walks over the keys from where the step before stopped and takes the
first that it chooses (:func:`hard_alignment`). For training, :func:`expected_alignment` is the
probability of each key to be the one taken, which has a gradient.

**Rows may sum to less than 1.** The rest is the probability of walking past the last key; it
attends to nothing, and what has walked past the end does not come back at a later step: row
sums never grow from step to step. Weights are between 0 and 1, exactly 0 at forbidden keys.

.. [1] Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention by Enforcing
   Monotonic Alignments", ICML 2017. arXiv:1704.00784
"""

from collections.abc import Callable

from jaxtyping import Bool, Float

from regard.axes import Array, checked, namespace
from regard.errors import ConventionError, explain

__all__ = [
    "expected_alignment",
    "expected_alignments",
    "hard_alignment",
    "monotonic_energy",
    "require_method",
]


@checked
def monotonic_energy(
    query: Float[Array, "*batch T_dec d_s"],
    key: Float[Array, "*batch T_enc d_h"],
    *,
    W: Float[Array, "d_attn d_s"],
    V: Float[Array, "d_attn d_h"],
    b: Float[Array, " d_attn"],
    v: Float[Array, " d_attn"],
    g: Float[Array, ""],
    r: Float[Array, ""],
) -> Float[Array, "*batch T_dec T_enc"]:
    r"""Score with a scale and an offset of their own, section 2.4, equation 16.

    .. math:: e_{i,j} = g \frac{v^\top}{\lVert v \rVert} \tanh(W s_{i-1} + V h_j + b) + r

    Parameters
    ----------
    query : (*batch, T_dec, d_s)
        Decoder states *before* the step, s_{i-1}.
    key : (*batch, T_enc, d_h)
        Encoder states.
    W, V : (d_attn, d_s), (d_attn, d_h)
        Projections of queries and keys.
    b, v : (d_attn,)
        Bias, and the weights of the features, of which only the direction counts; not zero.
    g, r : ()
        Scale and offset. A sigmoid, unlike a softmax, sees the offset: with r far below 0 a
        step passes over many keys.

    Returns
    -------
    energies : (*batch, T_dec, T_enc)
        Within r plus or minus abs(g) sqrt(d_attn).

    Raises
    ------
    ShapeError
        Two arguments disagree on a named axis.
    """
    xp = namespace(query)
    from_query = xp.matmul(query, xp.matrix_transpose(W)) + b  # (*batch, T_dec, d_attn)
    from_key = xp.matmul(key, xp.matrix_transpose(V))  # (*batch, T_enc, d_attn)
    pairs = xp.expand_dims(from_query, axis=-2) + xp.expand_dims(from_key, axis=-3)
    return xp.matmul(xp.tanh(pairs), g * v / xp.sqrt(xp.sum(v * v))) + r


@checked
def expected_alignment(
    p: Float[Array, "*rows T_enc"],
    previous: Float[Array, "*rows T_enc"],
    *,
    mask: Bool[Array, "*rows T_enc"] | None = None,
    method: str = "scan",
) -> Float[Array, "*rows T_enc"]:
    r"""Return the probability of each key to be the one a step takes: equations 9 to 14.

    .. math::
       \alpha_{i,j} &= p_{i,j} \sum_{k=1}^{j} \Big( \alpha_{i-1,k}
       \prod_{l=k}^{j-1} (1 - p_{i,l}) \Big) = p_{i,j} \, q_{i,j} \\
       q_{i,j} &= (1 - p_{i,j-1}) \, q_{i,j-1} + \alpha_{i-1,j}

    Parameters
    ----------
    p : (*rows, T_enc)
        Probability, 0 to 1, of choosing each key when the walk comes to it: the sigmoid of its
        energy.
    previous : (*rows, T_enc)
        Alpha of the step before. For the first step, 1 at key 0 and 0 elsewhere: where the walk
        begins, whether that key is permitted or not.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend. A forbidden key is never chosen and always passed.
    method : {"scan", "recursive", "cumulative"}
        ``recursive``: q key by key, exact. ``scan``: the same in log2(T_enc) steps over all
        keys at once, exact to rounding. ``cumulative``: appendix C.1, one cumulative product
        and sum; **not exact**, since it divides by products that underflow, which are clipped
        at 1e-10: weight that starts behind keys passed with less than that probability is lost.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1; a row sums to at most the sum of `previous`. Not normalised, as in the
        paper: the missing rest attends to nothing.

    Raises
    ------
    ShapeError, MaskError
        The arguments differ in shape, or the mask is not boolean.
    ConventionError
        Unknown method.

    Notes
    -----
    The scan is not the paper's: it combines the pairs (1 - p, alpha) of neighbours, all between
    0 and 1, so that nothing is divided and no logarithm is taken.

    Examples
    --------
    >>> import numpy as np
    >>> p, start = np.array([0.5, 0.5, 1.0]), np.array([1.0, 0.0, 0.0])
    >>> expected_alignment(p, start)
    array([0.5 , 0.25, 0.25])
    >>> expected_alignment(p, expected_alignment(p, start))
    array([0.25, 0.25, 0.5 ])
    """
    require_method("expected_alignment", method)
    if p.shape[-1] == 0:
        return p
    if mask is not None:
        xp = namespace(p)
        p = xp.where(mask, p, xp.zeros_like(p))
    return p * _METHODS[method](1 - p, previous)


@checked
def expected_alignments(
    p: Float[Array, "*batch T_dec T_enc"],
    *,
    mask: Bool[Array, "*batch T_dec T_enc"] | None = None,
    method: str = "scan",
) -> Float[Array, "*batch T_dec T_enc"]:
    """Return the expected alignment of every step, the first beginning at key 0.

    Parameters
    ----------
    p : (*batch, T_dec, T_enc)
        Probability, 0 to 1, of each step to choose each key when it comes to it.
    mask : (*batch, T_dec, T_enc), bool, optional
        True where the query may attend.
    method : {"scan", "recursive", "cumulative"}
        As for :func:`expected_alignment`.

    Returns
    -------
    weights : (*batch, T_dec, T_enc)
        Row sums are at most 1 and never grow from step to step.

    Raises
    ------
    ShapeError, MaskError, ConventionError
        As :func:`expected_alignment`.
    """
    xp = namespace(p)
    if 0 in p.shape[-2:]:
        return p
    ones = xp.ones_like(p[..., 0, :1])
    weights, rows = xp.concat([ones, xp.zeros_like(p[..., 0, 1:])], axis=-1), []
    for t in range(p.shape[-2]):
        may = None if mask is None else mask[..., t, :]
        weights = expected_alignment(p[..., t, :], weights, mask=may, method=method)
        rows.append(weights)
    return xp.stack(rows, axis=-2)


@checked
def hard_alignment(
    energies: Float[Array, "*rows T_enc"],
    previous: Float[Array, "*rows T_enc"],
    *,
    mask: Bool[Array, "*rows T_enc"] | None = None,
) -> Float[Array, "*rows T_enc"]:
    r"""Take the first key from where the step before stopped whose energy is above 0.

    .. math:: z_{i,j} = 1[\sigma(e_{i,j}) > 1/2], \quad
       t_i = \min \{ j \ge t_{i-1} : z_{i,j} = 1 \}

    Parameters
    ----------
    energies : (*rows, T_enc)
        Before the sigmoid.
    previous : (*rows, T_enc)
        1 at the key of the step before, 0 elsewhere. For the first step, 1 at key 0. All zero:
        the walk has passed the end.
    mask : (*rows, T_enc), bool, optional
        True where the query may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        1 at the key taken and 0 elsewhere, or all zero where none is chosen up to the last key;
        the context is then zero. No gradient passes.

    Raises
    ------
    ShapeError, MaskError
        The arguments differ in shape, or the mask is not boolean.

    Notes
    -----
    Section 2.2 with the threshold 1/2 that the paper decodes with. A walk that has passed the
    end stays there, as its expectation does. This function sees all energies; a decoder that
    is to be online computes them one by one and stops at the first above 0.

    Examples
    --------
    >>> import numpy as np
    >>> hard_alignment(np.array([9.0, -1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.0, 0.0]))
    array([0., 0., 1., 0.])
    """
    xp = namespace(energies)
    if energies.shape[-1] == 0:
        return energies
    chosen = energies > 0
    if mask is not None:
        chosen = chosen & mask
    # Counting needs a type that counts exactly, which bfloat16 does only to 256.
    started = xp.cumulative_sum(xp.astype(previous > 0, xp.int32), axis=-1) > 0
    candidates = xp.astype(chosen & started, xp.int32)
    first = (candidates > 0) & (xp.cumulative_sum(candidates, axis=-1) == 1)
    return xp.astype(first, energies.dtype)


def require_method(call: str, method: str) -> None:
    """Refuse a method that :func:`expected_alignment` does not have.

    Raises
    ------
    ConventionError
        Unknown method.
    """
    if method not in _METHODS:
        known = ", ".join(f'"{name}"' for name in _METHODS)
        raise ConventionError(
            explain(
                f"{call}(): `method` has no such value",
                expected=f"one of {known}",
                got=f"method={method!r}",
            )
        )


def _recursive(passed: Array, previous: Array) -> Array:
    xp = namespace(passed)
    found = [previous[..., 0]]
    for j in range(1, passed.shape[-1]):
        found.append(passed[..., j - 1] * found[-1] + previous[..., j])
    return xp.stack(found, axis=-1)


def _scan(passed: Array, previous: Array) -> Array:
    # After a round of reach d, q holds the sum over the 2 d keys up to its own, and `factor`
    # the probability of passing all of them.
    q, factor, reach = previous, _shifted(passed, 1), 1
    while reach < passed.shape[-1]:
        q = q + factor * _shifted(q, reach)
        factor = factor * _shifted(factor, reach)
        reach *= 2
    return q


def _cumulative(passed: Array, previous: Array) -> Array:
    xp = namespace(passed)
    tiny = float(xp.finfo(passed.dtype).smallest_normal)
    logs = xp.log(xp.clip(passed, tiny, 1.0))
    exclusive = xp.concat(
        [xp.zeros_like(logs[..., :1]), xp.cumulative_sum(logs[..., :-1], axis=-1)], axis=-1
    )
    product = xp.exp(exclusive)
    return product * xp.cumulative_sum(previous / xp.clip(product, 1e-10, 1.0), axis=-1)


_METHODS: dict[str, Callable[[Array, Array], Array]] = {
    "scan": _scan,
    "recursive": _recursive,
    "cumulative": _cumulative,
}


def _shifted(x: Array, by: int) -> Array:
    xp = namespace(x)
    return xp.concat([xp.zeros_like(x[..., :by]), x[..., : x.shape[-1] - by]], axis=-1)
