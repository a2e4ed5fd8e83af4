"""One decoder step at a time: the calls as the lesson and the papers write them.

Each takes one decoder state ``(*batch, d_s)``, all encoder states ``(*batch, T_enc, d_h)`` and
the score's parameters in the paper's order, and returns ``(context, weights)`` of shapes
``(*batch, d_h)`` and ``(*batch, T_enc)``. Arrays of any library and nested lists of floats are
welcome; lists are computed by :mod:`regard.attention.reference` and come back as lists.

A state has exactly one axis fewer than the encoder states, so a step and a sequence are never
told apart by guessing. For many queries at once use :func:`regard.attention.attend.attend`.
"""

from typing import Any

from jaxtyping import Bool, Float

from regard.attention import reference
from regard.attention.attend import Attended, attend
from regard.axes import Array, Nested, checked, namespace
from regard.errors import ShapeError, explain

__all__ = ["additive_attention", "concat_attention", "dot_attention", "general_attention"]


@checked
def additive_attention(
    decoder_state: Float[Array, "*batch d_s"] | Nested,
    encoder_states: Float[Array, "*batch T_enc d_h"] | Nested,
    W_a: Float[Array, "d_attn d_s"] | Nested,
    U_a: Float[Array, "d_attn d_h"] | Nested,
    v_a: Float[Array, " d_attn"] | Nested,
    *,
    mask: Bool[Array, "*batch T_enc"] | Nested | None = None,
) -> Attended:
    r"""Take one step of Bahdanau et al.'s additive attention [1]_.

    .. math:: e_i = v_a^\top \tanh(W_a s_{t-1} + U_a h_i)

    Parameters
    ----------
    decoder_state : (*batch, d_s)
        The state *before* the step, s_{t-1}.
    encoder_states : (*batch, T_enc, d_h)
        Keys and values alike.
    W_a, U_a, v_a : (d_attn, d_s), (d_attn, d_h), (d_attn,)
        The score's parameters.
    mask : (*batch, T_enc), bool, optional
        True where the step may attend.

    Returns
    -------
    attended : Attended
        ``(context, weights)`` of shapes ``(*batch, d_h)`` and ``(*batch, T_enc)``.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio 2015, appendix A.1.2. arXiv:1409.0473

    Examples
    --------
    >>> states = [[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]]
    >>> W_a, U_a = [[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]], [[0.5, 0.2, 0.3], [0.2, 0.6, 0.2]]
    >>> context, weights = additive_attention([0.9, 0.1, 0.2], states, W_a, U_a, [0.8, 0.6])
    >>> [round(weight, 3) for weight in weights]
    [0.322, 0.33, 0.348]
    """
    params = {"W_a": W_a, "U_a": U_a, "v_a": v_a}
    return _step(decoder_state, encoder_states, "additive", mask, params)


@checked
def dot_attention(
    decoder_state: Float[Array, "*batch d_h"] | Nested,
    encoder_states: Float[Array, "*batch T_enc d_h"] | Nested,
    *,
    mask: Bool[Array, "*batch T_enc"] | Nested | None = None,
) -> Attended:
    r"""Take one step of Luong et al.'s dot-product attention [1]_.

    .. math:: e_i = s_t^\top h_i

    Parameters
    ----------
    decoder_state : (*batch, d_h)
        The state *after* the step, s_t; as long as an encoder state.
    encoder_states : (*batch, T_enc, d_h)
        Keys and values alike.
    mask : (*batch, T_enc), bool, optional
        True where the step may attend.

    Returns
    -------
    attended : Attended
        ``(context, weights)`` of shapes ``(*batch, d_h)`` and ``(*batch, T_enc)``.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others; d_s and d_h must be equal.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.1, eq. 8. arXiv:1508.04025

    Examples
    --------
    >>> import numpy as np
    >>> states = np.array([[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]])
    >>> context, weights = dot_attention(np.array([0.9, 0.1, 0.2]), states)
    >>> print(weights.round(3))
    [0.464 0.305 0.231]
    """
    return _step(decoder_state, encoder_states, "dot", mask, {})


@checked
def general_attention(
    decoder_state: Float[Array, "*batch d_s"] | Nested,
    encoder_states: Float[Array, "*batch T_enc d_h"] | Nested,
    W: Float[Array, "d_s d_h"] | Nested,
    *,
    mask: Bool[Array, "*batch T_enc"] | Nested | None = None,
) -> Attended:
    r"""Take one step of Luong et al.'s general attention [1]_.

    .. math:: e_i = s_t^\top W h_i

    Parameters
    ----------
    decoder_state : (*batch, d_s)
        The state *after* the step, s_t.
    encoder_states : (*batch, T_enc, d_h)
        Keys and values alike.
    W : (d_s, d_h)
        The score's parameter.
    mask : (*batch, T_enc), bool, optional
        True where the step may attend.

    Returns
    -------
    attended : Attended
        ``(context, weights)`` of shapes ``(*batch, d_h)`` and ``(*batch, T_enc)``.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.1, eq. 8. arXiv:1508.04025
    """
    return _step(decoder_state, encoder_states, "general", mask, {"W": W})


@checked
def concat_attention(
    decoder_state: Float[Array, "*batch d_s"] | Nested,
    encoder_states: Float[Array, "*batch T_enc d_h"] | Nested,
    W_c: Float[Array, "d_attn d_s+d_h"] | Nested,
    v_c: Float[Array, " d_attn"] | Nested,
    *,
    mask: Bool[Array, "*batch T_enc"] | Nested | None = None,
) -> Attended:
    r"""Take one step of Luong et al.'s concat attention [1]_.

    .. math:: e_i = v_c^\top \tanh(W_c [s_t; h_i])

    Parameters
    ----------
    decoder_state : (*batch, d_s)
        The state *after* the step, s_t.
    encoder_states : (*batch, T_enc, d_h)
        Keys and values alike.
    W_c, v_c : (d_attn, d_s + d_h), (d_attn,)
        The score's parameters; W_c reads the decoder state first.
    mask : (*batch, T_enc), bool, optional
        True where the step may attend.

    Returns
    -------
    attended : Attended
        ``(context, weights)`` of shapes ``(*batch, d_h)`` and ``(*batch, T_enc)``.

    Raises
    ------
    ShapeError, MaskError, BackendError
        An argument does not fit the others.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.1, eq. 8. arXiv:1508.04025
    """
    return _step(decoder_state, encoder_states, "concat", mask, {"W_c": W_c, "v_c": v_c})


def _step(state: Any, states: Any, score: str, mask: Any, params: dict[str, Any]) -> Attended:
    if isinstance(state, list | tuple):
        return _step_lists(state, states, score, mask, params)
    xp = namespace(state)
    context, weights = attend(
        xp.expand_dims(state, axis=-2),
        states,
        score=score,
        mask=None if mask is None else xp.expand_dims(mask, axis=-2),
        **params,
    )
    assert weights is not None  # asked for above
    return Attended(context[..., 0, :], weights[..., 0, :])


def _step_lists(
    state: Any, states: Nested, score: str, mask: Nested | None, params: dict[str, Any]
) -> Attended:
    if state and isinstance(state[0], list | tuple):
        raise ShapeError(
            explain(
                "nested lists are computed one example at a time",
                expected="decoder_state (d_s,)",
                got="a list of lists",
                help="loop over the examples, or pass arrays",
            )
        )
    rows = None if mask is None else [mask]
    context, weights = reference.attend([state], states, score=score, mask=rows, **params)
    return Attended(context[0], weights[0])
