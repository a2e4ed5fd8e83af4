"""Attention for Hugging Face Transformers that can be looked at without changing an output.

Transformers' ``sdpa`` gives no weights, and its ``eager`` gives all of them, from another
computation than the one a model usually runs. Here the output always comes from PyTorch's fused
attention; the weights of one chosen layer are computed beside it, while somebody looks::

    model.set_attn_implementation(regard.nn.hf.register())
    with regard.nn.hf.look(model, layer=1, head=2) as looked:
        model(**batch)
    looked.weights  # one (batch, T_dec, T_enc) for each time the layer ran

Both of Transformers' interfaces are served. An attention registered without its mask function
is called without a mask, and padding is attended without a word.

Transformers is imported by :func:`register`, not before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import BackendError, ConventionError, ShapeError, explain
from regard.kernels.softmax import masked_softmax
from regard.nn.fused import safe_attention
from regard.nn.memory import clear

__all__ = ["Looked", "look", "register"]


@dataclass(eq=False)
class Looked:
    """What a layer attended while it was looked at."""

    layer: str
    """The name of its attention module within the model."""

    head: int | None
    """Which head; None for all of them."""

    weights: list[Tensor] = field(default_factory=list)
    """One for each time the layer ran: (batch, T_dec, T_enc), or (batch, heads, T_dec, T_enc)
    for all heads. Before dropout, detached; exactly zero where attention is forbidden. Where
    only the largest are kept, the last axis has those, in falling order."""

    largest: int | None = None
    """How many weights of a row are kept; None for all."""

    places: list[Tensor] = field(default_factory=list)
    """Where only the largest are kept: the key that each weight belongs to, of its shape."""


_Looks = tuple[tuple[nn.Module, Looked], ...]
# A variable of the context, not a mark on the module: another thread that serves the same model
# is neither seen nor slowed.
_looks: ContextVar[_Looks] = ContextVar("looks", default=())
_names: set[str] = set()
_ROWS = 256  # queries whose weights are computed at once where only the largest are kept


def register(name: str = "regard") -> str:
    """Make this attention known to Transformers, and its masks with it.

    Parameters
    ----------
    name : str
        What ``attn_implementation`` will call it: letters, digits and underscores. Registering
        it again changes nothing.

    Returns
    -------
    name : str
        The same, for ``from_pretrained(..., attn_implementation=name)``, ``from_config`` or
        ``model.set_attn_implementation(name)``.

    Raises
    ------
    BackendError
        Transformers is missing or too old.
    ConventionError
        Transformers knows another attention by this name, or would not read it as a name.
    """
    try:
        transformers: Any = import_module("transformers")
        interfaces = transformers.AttentionInterface, transformers.AttentionMaskInterface
    except (ModuleNotFoundError, AttributeError) as error:
        raise BackendError(
            explain(
                "regard.nn.hf needs Hugging Face Transformers",
                expected="transformers 4.53 or later",
                got=str(error),
                help="python -m pip install 'regard[hf]'",
            )
        ) from error
    taken = name == "eager" or any(name in interface() for interface in interfaces)
    odd = not name.isidentifier() or any(word in name for word in ("flash", "sdpa", "flex"))
    if (taken and name not in _names) or odd:
        raise ConventionError(
            explain(
                f"register(): {name!r} cannot be the name",
                expected="letters, digits and underscores, and no name of Transformers' own",
                got=f"name={name!r}",
                because="Transformers would take it for another attention",
            )
        )
    attention, masks = interfaces
    attention.register(name, _attend)
    masks.register(name, _mask)
    _names.add(name)
    return name


@contextmanager
def look(
    model: nn.Module,
    *,
    layer: int | str,
    head: int | None = None,
    largest: int | None = None,
) -> Iterator[Looked]:
    """Collect the attention weights of one layer while the block runs.

    Outputs are the same, bit for bit, as without looking. Looks can be nested, one for each
    layer of interest. A compiled model is not seen.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Whose attention is this one (:func:`register`).
    layer : int or str
        The layer's number, or the name of its attention module where several have that number:
        an encoder's, a decoder's, cross-attention.
    head : int, optional
        One head, counted from 0; all of them if left out.
    largest : int, optional
        Keep so many weights of each row, and which keys they belong to, instead of all T_enc.
        The rows are then computed a block at a time, so that a long input costs memory for
        T_dec rows of `largest` weights and never for T_dec rows of T_enc.

    Yields
    ------
    looked : Looked
        Its ``weights`` grow with each call of the layer.

    Raises
    ------
    ConventionError
        The model runs another attention, or has no such layer, or several; or `largest` is no
        whole number from 1.
    ShapeError
        The layer has no such head; raised when it runs.
    """
    if largest is not None and (isinstance(largest, bool) or largest < 1):
        raise ConventionError(
            explain(
                "look(): `largest` is no count",
                expected="a whole number from 1, or None for all weights",
                got=f"largest={largest!r}",
            )
        )
    module_name, module = _find(model, layer)
    config = getattr(module, "config", None) or getattr(model, "config", None)
    runs = getattr(config, "_attn_implementation", None)
    if runs not in _names:
        raise ConventionError(
            explain(
                "look(): the model runs another attention",
                expected=f"one of {', '.join(sorted(_names)) or 'none registered yet'}",
                got=f"attn_implementation={runs!r}",
                help="model.set_attn_implementation(regard.nn.hf.register())",
            )
        )
    looked = Looked(module_name, head, largest=largest)
    token = _looks.set((*_looks.get(), (module, looked)))
    try:
        yield looked
    finally:
        _looks.reset(token)


def _find(model: nn.Module, layer: int | str) -> tuple[str, nn.Module]:
    attentions = {
        name: module
        for name, module in model.named_modules()
        if "Attention" in type(module).__name__ and hasattr(module, "config")
    }
    if isinstance(layer, str):
        found = {name: module for name, module in attentions.items() if name == layer}
    else:
        found = {
            name: module
            for name, module in attentions.items()
            if getattr(module, "layer_idx", None) == layer
        }
    if len(found) == 1:
        return next(iter(found.items()))
    several = bool(found)
    raise ConventionError(
        explain(
            f"look(): the model has {'several layers' if several else 'no layer'} {layer!r}",
            expected="the name of one attention module" if several else "one of these layers",
            got=f"layer={layer!r}",
            help="\n".join(f"layer={name!r}" for name in found or attentions)
            or "this model's attention modules cannot be told by their class",
        )
    )


def _mask(*args: Any, **options: Any) -> Tensor | None:
    """Make the mask as Transformers does for sdpa: boolean, True = may attend, or None."""
    masks: Any = import_module("transformers.masking_utils")
    # Older releases would open a row without a key, for kernels that made NaN of it.
    options["allow_torch_fix"] = False
    made: Tensor | None = masks.sdpa_mask(*args, **options)
    return made


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend as Transformers' attention functions do: (batch, heads, T, d_head) and back.

    Keys and values may have fewer heads than queries; masks and biases broadcast, as theirs do.
    """
    _require_known(options)
    T_dec, T_enc = query.shape[-2], key.shape[-2]
    may, bias = _split(attention_mask, T_enc)
    causal = attention_mask is None and T_dec > 1
    if causal:
        # Transformers' rule for sdpa: a mask that is plainly causal is left out, and then query
        # 0 stands at key 0. One query alone is a decoding step, which sees everything.
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if causal and (position_bias is not None or T_dec != T_enc):
        may, causal = _past(query, key), False
    if position_bias is not None:
        bias = position_bias if bias is None else position_bias + bias
    if may is not None:
        # NaN at a padded position reaches nobody.
        reached = may.any(1).any(-2)[:, None]
        key = clear(key, reached.expand(key.shape[:-1]))
        value = clear(value, reached.expand(value.shape[:-1]))
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    bias = None if bias is None else bias.to(query.dtype)
    context = safe_attention(
        query, key, value, may, bias, causal=causal, dropout=dropout, scale=scaling
    )

    def weights(head: int | None) -> Tensor:
        allowed = _past(query, key) if causal else may
        return _weights(query, key, allowed, bias, head=head, scaling=scaling)

    if not torch.compiler.is_compiling():
        for watched, looked in _looks.get():
            if watched is module:
                with torch.no_grad():
                    if looked.largest is None:
                        looked.weights.append(weights(looked.head))
                    else:
                        _keep_largest(
                            looked,
                            query,
                            key,
                            may=may,
                            bias=bias,
                            causal=causal,
                            scaling=scaling,
                        )
    return context.transpose(1, 2).contiguous(), weights(None) if output_attentions else None


def _keep_largest(
    looked: Looked,
    query: Tensor,
    key: Tensor,
    *,
    may: Tensor | None,
    bias: Tensor | None,
    causal: bool,
    scaling: float | None,
) -> None:
    """Add the largest weights of each row and their places, some rows at a time."""
    T_dec, T_enc = query.shape[-2], key.shape[-2]
    count = min(looked.largest or T_enc, T_enc)
    heads = query.shape[:2] if looked.head is None else query.shape[:1]
    # Made first and filled: results that are kept one by one lie between the blocks' temporary
    # memory, which the allocator then cannot use again.
    values = query.new_empty((*heads, T_dec, count))
    places = torch.empty(values.shape, dtype=torch.int64, device=query.device)
    for start in range(0, T_dec, _ROWS):
        rows = slice(start, start + _ROWS)
        part = query[..., rows, :]

        def cut(x: Tensor | None, rows: slice = rows) -> Tensor | None:
            return x[..., rows, :] if x is not None and x.shape[-2] > 1 else x

        allowed = cut(may)
        if causal:
            shape = 1, 1, part.shape[-2], T_enc
            allowed = torch.ones(shape, dtype=torch.bool, device=query.device).tril(start)
        weights = _weights(part, key, allowed, cut(bias), head=looked.head, scaling=scaling)
        values[..., rows, :], places[..., rows, :] = weights.topk(count, dim=-1)
    looked.weights.append(values)
    looked.places.append(places)


def _past(query: Tensor, key: Tensor) -> Tensor:
    """Return the causal mask (1, 1, T_dec, T_enc), query 0 at key 0."""
    shape = 1, 1, query.shape[-2], key.shape[-2]
    return torch.ones(shape, dtype=torch.bool, device=query.device).tril()


def _split(mask: Tensor | None, T_enc: int) -> tuple[Tensor | None, Tensor | None]:
    """Return where a query may attend, and what a float mask adds there."""
    if mask is None:
        return None, None
    mask = mask[..., :T_enc]  # a static cache's mask is longer than what it holds
    if mask.dtype == torch.bool:
        return mask, None
    # Sums of two lowest numbers are -inf, so both count.
    may = mask > torch.finfo(mask.dtype).min
    return may, mask.masked_fill(~may, 0.0)


def _weights(
    query: Tensor,
    key: Tensor,
    may: Tensor | None,
    bias: Tensor | None,
    *,
    head: int | None,
    scaling: float | None,
) -> Tensor:
    heads = query.shape[1]
    if head is not None and not 0 <= head < heads:
        raise ShapeError(
            explain(
                "look(): the layer has no such head",
                expected=f"0 to {heads - 1}",
                got=f"head={head}",
            )
        )

    def pick(x: Tensor | None) -> Tensor | None:
        # One head costs one head's memory; an axis of 1 counts for all of them.
        if x is None or head is None:
            return x
        return x[:, head] if x.shape[1] > 1 else x[:, 0]

    q, k, allowed, shift = pick(query), pick(key), pick(may), pick(bias)
    assert q is not None  # for mypy: only masks and biases can be missing
    assert k is not None
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(q * scale, k.transpose(-1, -2))
    return masked_softmax(scores if shift is None else scores + shift, allowed)


def _require_known(options: dict[str, Any]) -> None:
    """Refuse what would change the result if it were overlooked."""
    for name in ("softcap", "s_aux", "head_mask"):
        if options.get(name) is not None:
            raise ConventionError(
                explain(
                    f"the regard attention does not know `{name}`",
                    expected=f"a model without {name}",
                    got=f"`{name}` from the model",
                    help="attn_implementation='eager' runs this model",
                )
            )
