"""What happens inside PyTorch's fused attention, as nodes and a site of its own.

The user gets the library's own result; only where other weights are asked for is the rest
computed here.
"""

import inspect
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard.check.trace.recorder import Recorder
from regard.check.trace.records import Node, Site

__all__ = ["multi_head", "scaled_dot_product"]


def scaled_dot_product(
    recorder: Recorder, result: Tensor, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Tensor:
    """``F.scaled_dot_product_attention`` as product, scale, mask, softmax, dropout, product."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = {**dict(zip(names, args, strict=False)), **keywords}
    site, weights, value = _attend(
        recorder,
        *(given[n] for n in names[:3]),
        mask=given.get("attn_mask"),
        causal=bool(given.get("is_causal", False)),
        scale=given.get("scale"),
        grouped=bool(given.get("enable_gqa", False)),
        dropout=float(given.get("dropout_p", 0.0)),
    )
    other = recorder.other_weights(site, weights.double().numpy())
    if other is not None:
        weights = torch.from_numpy(other).to(result.dtype)
        site.weights = _note(recorder, "softmax", weights, [site.weights.inputs[0]], dim=-1)
        result = weights @ value
    steps = (site.post_ops[-1] if site.post_ops else site.weights, site.value)
    rank = result.dim()
    node = _note(recorder, "matmul", result, [s for s in steps if s], fused=True)
    lead = "abcdefgh"[: rank - 2]
    node.arguments["written"] = f"{lead}xy,{lead}yz->{lead}xz"
    site.context = site.contraction = node
    return result


def multi_head(
    recorder: Recorder, result: Any, args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """``F.multi_head_attention_forward``: projections, one site, the output projection."""
    bound = inspect.signature(functional.multi_head_attention_forward).bind(*args, **keywords)
    bound.apply_defaults()
    at = bound.arguments
    if at["bias_k"] is not None or at["add_zero_attn"] or at["static_k"] is not None:
        raise NotImplementedError
    batched = at["query"].dim() == 3
    tensors = [t if batched else t.unsqueeze(1) for t in (at["query"], at["key"], at["value"])]
    heads, width = at["num_heads"], tensors[0].shape[-1]
    batch = tensors[0].shape[1]
    split = _projected(recorder, at, tensors, heads)
    mask = _merged_mask(recorder, at, batch, heads)
    dropout = float(at["dropout_p"]) if at["training"] else 0.0
    causal = bool(at["is_causal"]) and mask is None
    site, weights, value = _attend(recorder, *split, mask=mask, causal=causal, dropout=dropout)
    weighed = weights
    other = recorder.other_weights(site, weights.double().numpy())
    if other is not None:
        weighed = torch.from_numpy(other).to(value.dtype)
        site.weights = _note(recorder, "softmax", weighed, [site.weights.inputs[0]], dim=-1)
    mixed = weighed @ value
    last = site.post_ops[-1] if site.post_ops else site.weights
    node = _note(recorder, "matmul", mixed, [last, recorder.operand(value)])
    node.arguments["written"] = "abxy,abyz->abxz"
    site.context = site.contraction = node
    merged = mixed.permute(2, 0, 1, 3).reshape(-1, batch, width)
    node = _note(recorder, "permute", merged, [node], dims=(2, 0, 1, 3))
    out = functional.linear(merged, at["out_proj_weight"], at["out_proj_bias"])
    inputs = [node, recorder.operand(at["out_proj_weight"])]
    shown, alignment = result
    if other is not None:
        shown = out if batched else out.squeeze(1)
        if alignment is not None:
            alignment = weighed.mean(1) if at["average_attn_weights"] else weighed
            alignment = alignment if batched else alignment.squeeze(0)
    _note(recorder, "linear", shown, inputs)
    if alignment is not None:
        averaged = bool(at["average_attn_weights"])
        op = "mean" if averaged else "identity"
        _note(recorder, op, alignment, [site.weights], **({"dim": 1} if averaged else {}))
    return shown, alignment


def _projected(recorder: Recorder, at: Any, tensors: list[Tensor], heads: int) -> list[Tensor]:
    """Queries, keys and values of each head, (batch, heads, steps, size)."""
    if at["use_separate_proj_weight"]:
        matrices = [at["q_proj_weight"], at["k_proj_weight"], at["v_proj_weight"]]
    else:
        matrices = list(at["in_proj_weight"].chunk(3))
    biases: list[Any] = [None] * 3
    if at["in_proj_bias"] is not None:
        biases = list(at["in_proj_bias"].chunk(3))
    origin = recorder.find(at["in_proj_weight"])
    user = (at["query"], at["key"], at["value"])
    split = []
    for mine, tensor, matrix, bias in zip(user, tensors, matrices, biases, strict=True):
        weight = recorder.find(matrix) or origin
        flat = functional.linear(tensor, matrix, bias)
        inputs = [recorder.operand(mine)] + ([weight] if weight else [])
        node = _note(recorder, "linear", flat, inputs)
        by_head = flat.view(*flat.shape[:2], heads, -1)
        node = _note(recorder, "view", by_head, [node])
        by_head = by_head.permute(1, 2, 0, 3)
        _note(recorder, "permute", by_head, [node], dims=(1, 2, 0, 3))
        split.append(by_head)
    return split


def _attend(
    recorder: Recorder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    grouped: bool = False,
    dropout: float = 0.0,
) -> tuple[Site, Tensor, Tensor]:
    nodes = [recorder.operand(t) for t in (query, key, value)]
    if grouped:
        times = query.shape[-3] // key.shape[-3]
        key, value = (t.repeat_interleave(times, -3) for t in (key, value))
    raw = query @ key.transpose(-2, -1)
    product = _note(recorder, "matmul", raw, nodes[:2])
    lead = "abcdefgh"[: raw.dim() - 2]
    product.arguments["written"] = f"{lead}xy,{lead}zy->{lead}xz"
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    scores = raw * factor
    steps = [_note(recorder, "mul", scores, [product], arg0=factor)]
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        scores = scores.masked_fill(~seen, float("-inf"))
        steps.append(_note(recorder, "masked_fill", scores, [steps[-1]], causal=True))
    if mask is not None:
        its = recorder.operand(mask)
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, float("-inf"))
            steps.append(_note(recorder, "masked_fill", scores, [steps[-1], its]))
        else:
            scores = scores + mask
            steps.append(_note(recorder, "add", scores, [steps[-1], its]))
    weights = scores.softmax(dim=-1)
    node = _note(recorder, "softmax", weights, [steps[-1]], dim=-1)
    site = recorder.add_site(steps[-1], node, weights.dim() - 1, fused=True)
    site.query, site.key, site.product, site.value = nodes[0], nodes[1], product, nodes[2]
    site.pre_ops = tuple(steps)
    site.slope, site.r2 = factor, 1.0
    if dropout > 0.0:
        step = _note(recorder, "dropout", weights, [node], p=dropout, training=True)
        site.post_ops = (step,)
    return site, weights, value


def _merged_mask(recorder: Recorder, at: Any, batch: int, heads: int) -> Tensor | None:
    """The layer's masks as one additive mask, where True means "may not"."""
    total: Tensor | None = None
    inputs = []
    for name in ("attn_mask", "key_padding_mask"):
        mask = at[name]
        if mask is None:
            continue
        node = recorder.operand(mask)
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=at["query"].dtype).masked_fill(
                mask, float("-inf")
            )
        if name == "key_padding_mask":
            mask = mask.view(batch, 1, 1, -1)
        elif mask.dim() == 3:
            mask = mask.view(batch, heads, *mask.shape[1:])
        inputs.append(_note(recorder, "view", mask, [node], shape=tuple(mask.shape)))
        total = mask if total is None else total + mask
    if total is not None:
        _note(recorder, "add", total, inputs)
    return total


def _note(
    recorder: Recorder, op: str, tensor: Tensor, inputs: list[Node], **arguments: Any
) -> Node:
    node = recorder.note(op, tensor, inputs, {**arguments, "inside": True})
    if node is None:
        raise NotImplementedError
    return node
