r"""Bahdanau's additive attention as a Keras 3 layer, for every Keras backend.

``keras.layers.AdditiveAttention`` computes :math:`\sum v \tanh(q + k)`: it has no projections,
so queries and keys must be of one size and come projected from elsewhere. This one has the
paper's W_a, U_a and v_a. It is called the same way; what padding holds has no influence, and a
query that may attend nowhere gives zeros instead of a mean over padding.

Keras is imported when the layer is first asked for, not before: set ``KERAS_BACKEND`` first.
"""

import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from regard.errors import BackendError, ConventionError, MaskError, ShapeError, explain

__all__ = ["AdditiveAttention"]  # noqa: F822 - made by __getattr__ when it is first used

_CALL = "AdditiveAttention"


def __getattr__(name: str) -> Any:
    if name != "AdditiveAttention":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _layer()


class _AdditiveAttention:
    r"""Additive attention with its projections, as Bahdanau et al. [1]_ define it.

    .. math:: e_{t,i} = v_a^\top \tanh(W_a s_t + U_a h_i)

    Call it as ``layer([query, value])`` or ``layer([query, value, key])``; a key left out is
    the value. Call arguments, all optional:

    - ``mask=[query_mask, value_mask]``: boolean, True = real token, (batch, T_dec) and (batch,
      T_enc), each may be None. Masks that travel with Keras tensors arrive here by themselves;
      a third one, of the key, holds together with the value's.
    - ``return_attention_scores``: whether to return ``(context, weights)``. The context is the
      same either way.
    - ``use_causal_mask``: query t may attend keys 0 .. t, the top left corner.
    - ``training``: whether dropout acts.

    It returns the context (batch, T_dec, d_v), and weights (batch, T_dec, T_enc) where asked
    for: those before dropout, exactly zero at padding and for a query that is padding or may
    attend nowhere.

    Parameters
    ----------
    units : int
        d_attn, the size of the space where queries and keys are compared.
    dropout : float
        Probability, 0 to 1, of dropping a weight while training.
    seed : int, optional
        Of the dropout.
    kernel_initializer : str or keras.initializers.Initializer
        Of all three parameters.
    **options
        Those of every Keras layer: ``name``, ``dtype``, ``trainable``.

    Attributes
    ----------
    W_a, U_a, v_a : (units, d_s), (units, d_h), (units,)
        As in :class:`regard.nn.AdditiveAttention`, so that parameters move either way.

    Raises
    ------
    ShapeError
        `units` is no size, or queries, values and keys do not fit each other.
    MaskError
        A mask is not boolean, or not two or three are given.
    ConventionError
        `dropout` is no probability, or the inputs are not a list of two or three.

    Notes
    -----
    Holds one (batch, T_dec, T_enc, units) array, as Keras' own layer does.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, appendix A.1.2. arXiv:1409.0473
    """

    W_a: Any
    U_a: Any
    v_a: Any
    add_weight: Any  # Keras' Layer, which brings these two, is joined in `_layer`
    compute_dtype: str

    def __init__(
        self,
        units: int,
        dropout: float = 0.0,
        seed: int | None = None,
        kernel_initializer: Any = "glorot_uniform",
        **options: Any,
    ) -> None:
        keras = _keras()
        super().__init__(**options)
        _require_options(units, dropout)
        self.units, self.dropout, self.seed = units, dropout, seed
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True
        if dropout:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape: Sequence[Any]) -> None:
        """Make the parameters for inputs of these shapes."""
        d_s, d_h = input_shape[0][-1], input_shape[-1][-1]
        shapes = {
            "W_a": (self.units, d_s),
            "U_a": (self.units, d_h),
            "v_a": (self.units,),
        }
        for name, shape in shapes.items():
            made = self.add_weight(name=name, shape=shape, initializer=self.kernel_initializer)
            setattr(self, name, made)

    def call(
        self,
        inputs: Sequence[Any],
        mask: Sequence[Any] | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """Let every query read the values; arguments and result as the class says."""
        ops = _keras().ops
        query, value, key = _three(inputs)
        _require_fit(query.shape, value.shape, key.shape)
        query_mask, value_mask = _two_masks(mask, query.shape, value.shape)
        if query_mask is not None:
            query = _clear(query, query_mask)
        if value_mask is not None:
            same = key is value
            value = _clear(value, value_mask)
            key = value if same else _clear(key, value_mask)
        # Not matmul: on torch, Keras' own rounds float64 to float32.
        from_query = ops.einsum("bts,as->bta", query, self.W_a)
        from_key = ops.einsum("bth,ah->bta", key, self.U_a)
        pairs = ops.expand_dims(from_query, -2) + ops.expand_dims(from_key, -3)
        scores = ops.sum(ops.tanh(pairs) * self.v_a, axis=-1)  # (batch, T_dec, T_enc)
        may = _permitted(query_mask, value_mask, scores if use_causal_mask else None)
        weights = _masked_softmax(scores, may)
        kept = weights
        if training and self.dropout:
            kept = _keras().random.dropout(weights, self.dropout, seed=self.seed_generator)
        context = ops.einsum("bte,bev->btv", kept, value)
        return (context, weights) if return_attention_scores else context

    def compute_mask(self, inputs: Sequence[Any], mask: Sequence[Any] | None = None) -> Any:
        """Return the query's mask: the context has the query's time axis."""
        del inputs
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape: Sequence[Any]) -> tuple[Any, ...]:
        """Return the context's shape, (batch, T_dec, d_v)."""
        return (*input_shape[0][:-1], input_shape[1][-1])

    def compute_output_spec(
        self,
        inputs: Sequence[Any],
        mask: Sequence[Any] | None = None,
        training: bool = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """Return what a call returns, without its numbers: T_dec and T_enc may differ."""
        del training, use_causal_mask
        query, value, key = _three(inputs)
        _require_fit(query.shape, value.shape, key.shape)
        _two_masks(mask, query.shape, value.shape)
        made, dtype = _keras().KerasTensor, self.compute_dtype
        context = made(self.compute_output_shape([query.shape, value.shape]), dtype=dtype)
        weights = made((*query.shape[:-1], value.shape[-2]), dtype=dtype)
        return (context, weights) if return_attention_scores else context

    def get_config(self) -> dict[str, Any]:
        """Return what the constructor needs to build this layer again."""
        return {
            **super().get_config(),  # type: ignore[misc] # Keras' own
            "units": self.units,
            "dropout": self.dropout,
            "seed": self.seed,
            "kernel_initializer": _keras().initializers.serialize(self.kernel_initializer),
        }


def _keras() -> Any:
    try:
        return importlib.import_module("keras")
    except ModuleNotFoundError as error:
        raise BackendError(
            explain(
                "regard.nn.keras needs Keras 3 and one of its backends",
                expected="keras, and what KERAS_BACKEND names: torch, jax, tensorflow",
                got=f"no module named {error.name!r}",
                help="python -m pip install 'regard[keras]', and KERAS_BACKEND=torch or jax",
            )
        ) from error


@functools.cache
def _layer() -> Any:
    keras = _keras()
    told = {name: vars(_AdditiveAttention)[name] for name in ("__doc__", "__module__")}
    made = type(_CALL, (_AdditiveAttention, keras.layers.Layer), told)
    return keras.saving.register_keras_serializable("regard")(made)


def _three(inputs: Any) -> tuple[Any, Any, Any]:
    if not isinstance(inputs, list | tuple) or len(inputs) not in (2, 3):
        raise ConventionError(
            explain(
                f"{_CALL}(): `inputs` is no list of two or three tensors",
                expected="[query, value] or [query, value, key]",
                got=f"{len(inputs)} of them"
                if isinstance(inputs, list | tuple)
                else type(inputs).__name__,
            )
        )
    return inputs[0], inputs[1], inputs[-1]


def _two_masks(mask: Any, query: Sequence[Any], value: Sequence[Any]) -> tuple[Any, Any]:
    if mask is None:
        return None, None
    if not isinstance(mask, list | tuple) or len(mask) not in (2, 3):
        raise MaskError(
            explain(
                f"{_CALL}(): `mask` is no list of two masks",
                expected="[query_mask, value_mask], each of them None or a tensor",
                got=f"{len(mask)} of them"
                if isinstance(mask, list | tuple)
                else type(mask).__name__,
            )
        )
    ops = _keras().ops
    names = ("query_mask", "value_mask", "key_mask")
    found: list[Any] = [None, None, None]
    for n, (name, one) in enumerate(zip(names, mask, strict=False)):
        if one is None:
            continue
        shape, axis = (query, "T_dec") if n == 0 else (value, "T_enc")
        found[n] = _checked_mask(name, ops.convert_to_tensor(one), shape[:-1], axis)
    _, real, of_key = found
    if of_key is not None:
        real = of_key if real is None else ops.logical_and(real, of_key)
    return found[0], real


def _checked_mask(name: str, mask: Any, shape: Sequence[Any], axis: str) -> Any:
    dtype = _keras().backend.standardize_dtype(mask.dtype)
    if dtype != "bool":
        raise MaskError(
            explain(
                f"{_CALL}(): `{name}` is not boolean",
                expected="a boolean tensor, True = real token",
                got=f"dtype {dtype}",
                help=f"`{name} != 0` if 1 means token, `{name} == 0` if 1 means padding",
            )
        )
    if not _agree(mask.shape, shape):
        raise ShapeError(
            explain(
                f"{_CALL}(): `{name}` does not fit",
                expected=f"{name} (batch, {axis}) = {tuple(shape)}",
                got=f"{name} {tuple(mask.shape)}",
            )
        )
    return mask


def _require_fit(query: Sequence[Any], value: Sequence[Any], key: Sequence[Any]) -> None:
    shapes: Mapping[str, Sequence[Any]] = {"query": query, "value": value, "key": key}
    for name, shape in shapes.items():
        features = {"query": "d_s", "value": "d_v", "key": "d_h"}[name]
        axis = "T_dec" if name == "query" else "T_enc"
        if len(shape) != 3:
            raise ShapeError(
                explain(
                    f"{_CALL}(): `{name}` has {len(shape)} axes, not 3",
                    expected=f"{name} (batch, {axis}, {features})",
                    got=f"{name} {tuple(shape)}",
                )
            )
        other, n, shared = ("query", 1, "batch") if name == "value" else ("value", 2, "T_enc")
        if name == "query" or _agree(shape[:n], shapes[other][:n]):
            continue
        raise ShapeError(
            explain(
                f"{_CALL}(): `{name}` does not fit `{other}`",
                expected=f"the same batch{' and T_enc' * (shared == 'T_enc')}, "
                f"{tuple(shapes[other][:n])}",
                got=f"{name} {tuple(shape)}",
                because="nothing is broadcast",
            )
        )


def _agree(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    """Return whether two shapes are equal where both are known."""
    pairs = zip(shape, other, strict=False)
    return len(shape) == len(other) and all(a == b for a, b in pairs if None not in (a, b))


def _clear(states: Any, real: Any) -> Any:
    ops = _keras().ops
    return ops.where(ops.expand_dims(real, -1), states, ops.zeros_like(states))


def _permitted(query_mask: Any, value_mask: Any, scores: Any) -> Any:
    """Return one mask that broadcasts to (batch, T_dec, T_enc); `scores` where it is causal."""
    ops = _keras().ops
    masks = [] if query_mask is None else [ops.expand_dims(query_mask, -1)]
    masks += [] if value_mask is None else [ops.expand_dims(value_mask, -2)]
    if scores is not None:
        T_dec, T_enc = ops.shape(scores)[-2:]
        past = ops.expand_dims(ops.arange(T_enc), 0) <= ops.expand_dims(ops.arange(T_dec), 1)
        masks.append(ops.expand_dims(past, 0))
    return functools.reduce(ops.logical_and, masks) if masks else None


def _masked_softmax(scores: Any, may: Any) -> Any:
    keras = _keras()
    ops, dtype = keras.ops, keras.backend.standardize_dtype(scores.dtype)
    half = dtype in ("float16", "bfloat16")
    work = ops.cast(scores, "float32") if half else scores
    if may is not None:
        # A very low finite number, not -inf: a row of -inf would be NaN, forward and backward.
        # It gives such a row equal weights, which the second choice takes away again.
        lowest = -1.7e308 if dtype == "float64" else -3.4e38
        work = ops.where(may, work, ops.full_like(work, lowest))
    weights = ops.softmax(work, axis=-1)
    if may is not None:
        weights = ops.where(may, weights, ops.zeros_like(weights))
    return ops.cast(weights, dtype) if half else weights


def _require_options(units: Any, dropout: Any) -> None:
    if not isinstance(units, int) or isinstance(units, bool) or units < 1:
        raise ShapeError(
            explain(
                f"{_CALL}(): `units` is not a size",
                expected="units as an integer of at least 1",
                got=repr(units),
            )
        )
    if not 0 <= dropout <= 1:
        raise ConventionError(
            explain(
                f"{_CALL}(): `dropout` is no probability", expected="0 to 1", got=str(dropout)
            )
        )
