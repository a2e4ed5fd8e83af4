"""Minimal reproductions of what the check found, without the check.

Each function returns what it measured; a figure of 0 where something must change, or another
figure where nothing may, is the defect.
"""

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

from real_code.evidence_kinds import KINDS
from real_code.evidence_streams import STREAMS
from real_code.evidence_transformers import TRANSFORMERS, Figures, gap

__all__ = ["EVIDENCE", "measured"]


def opennmt_copy() -> Figures:
    """What the copy distribution puts on padding."""
    import torch  # noqa: PLC0415

    decoder, run = _opennmt(copy_attn=True, copy_attn_type="general")
    lengths = torch.tensor([7, 4, 2])
    attns = run(lengths)[1]
    past = torch.arange(7)[None] >= lengths[:, None]
    del decoder
    return {
        f"largest mass of {name} on padding": float(
            (attns[name].transpose(0, 1) * past[:, None]).sum(-1).max()
        )
        for name in ("copy", "std")
    }


def opennmt_coverage() -> Figures:
    """Results with another coverage layer, and what a direct call does to its argument."""
    import torch  # noqa: PLC0415
    from onmt.modules.global_attention import GlobalAttention  # noqa: PLC0415

    decoder, run = _opennmt(coverage_attn=True)
    lengths = torch.tensor([7, 4, 2])
    before = run(lengths)[0]
    with torch.no_grad():
        decoder.attn.linear_cover.weight.add_(5.0)
    layer = GlobalAttention(8, coverage=True, attn_type="mlp")
    memory = torch.randn(3, 7, 8)
    given = memory.clone()
    with torch.no_grad():
        layer(torch.randn(3, 5, 8), memory, coverage=torch.rand(3, 7))
    return {
        "change of the states with another coverage layer": gap(before, run(lengths)[0]),
        "change of the argument `enc_out` by a direct call": gap(given, memory),
    }


def opennmt_axes() -> Figures:
    """Axes of attns["std"] by decoder, batch of 3 and 5 steps."""
    import torch  # noqa: PLC0415

    figures = {}
    for kind in ("StdRNNDecoder", "InputFeedRNNDecoder"):
        shape = _opennmt(kind)[1](torch.tensor([7, 4, 2]))[1]["std"].shape
        figures[f"first axis of {kind}"] = float(shape[0])
    return figures


def _opennmt(
    kind: str = "InputFeedRNNDecoder", **options: Any
) -> tuple[Any, Callable[..., Any]]:
    import onmt.decoders.decoder as decoders  # noqa: PLC0415
    import torch  # noqa: PLC0415

    class Words(torch.nn.Module):
        embedding_size = 8

        def forward(self, tgt: Any, step: Any = None) -> Any:
            return tgt

    decoder = getattr(decoders, kind)(
        "GRU", False, 1, 8, attn_type="general", embeddings=Words(), **options
    ).eval()
    tgt, memory, last = torch.randn(3, 5, 8), torch.randn(3, 7, 8), torch.randn(1, 3, 8)

    def run(lengths: Any) -> Any:
        decoder.init_state(memory, memory, last)
        return decoder(tgt, memory, src_len=lengths)

    return decoder, run


def joeynmt() -> Figures:
    """Weights under other values of the same shape."""
    import torch  # noqa: PLC0415
    from joeynmt.attention import BahdanauAttention  # noqa: PLC0415

    layer = BahdanauAttention(6, 8, 5)
    query, mask = torch.randn(2, 1, 5), torch.ones(2, 1, 7, dtype=torch.bool)
    first, second = torch.randn(2, 7, 8), torch.randn(2, 7, 8)
    layer.compute_proj_keys(first)
    a, b = (layer(query=query, mask=mask, values=v)[1] for v in (first, second))
    return {"change of the weights with other values": gap(a, b)}


def allennlp() -> Figures:
    """Sum of weights whose scores are -30 and -31 beside a masked key."""
    import torch  # noqa: PLC0415
    from allennlp_light.nn.util import masked_softmax  # noqa: PLC0415

    scores, mask = torch.tensor([[-30.0, -31.0, 5.0]]), torch.tensor([[True, True, False]])
    return {"sum over the keys": float(masked_softmax(scores, mask).sum())}


def allennlp_one_key() -> Figures:
    """Shape of the weights over one key, batch of 3."""
    import torch  # noqa: PLC0415
    from allennlp_light.modules.attention import LinearAttention  # noqa: PLC0415

    layer = LinearAttention(4, 4, "x,y")
    found = layer(torch.randn(3, 4), torch.randn(3, 1, 4), torch.ones(3, 1, dtype=torch.bool))
    return {"weights of each example (one key is given)": float(found.shape[1])}


def opennmt_parallel() -> Figures:
    """Norms of a decoder layer with a parallel residual."""
    import torch  # noqa: PLC0415
    from onmt.decoders.transformer import TransformerDecoderLayer  # noqa: PLC0415

    layer = TransformerDecoderLayer(16, 2, 8, 0.0, 0.0, parallel_residual=True)
    x, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    masks = torch.zeros(2, 1, 7, dtype=torch.bool), torch.zeros(2, 1, 5, dtype=torch.bool)
    for parameter in layer.parameters():  # they come uninitialised
        torch.nn.init.normal_(parameter, std=0.3)
    before = layer(x, memory, *masks)[0]
    with torch.no_grad():
        layer.layer_norm_res.weight.add_(5.0)
    return {
        "change with other weights of layer_norm_res": gap(before, layer(x, memory, *masks)[0])
    }


def textbook() -> Figures:
    """The scores that a masked softmax was given, after the call."""
    import torch  # noqa: PLC0415

    from real_code.textbook import imported  # noqa: PLC0415

    masked_softmax = imported().masked_softmax
    scores = torch.randn(2, 3, 5)
    given = scores.clone()
    masked_softmax(scores, torch.tensor([2, 4]))
    return {"largest change of the argument": gap(given, scores)}


def torch_batch_first() -> Figures:
    """Self-attention over (batch, T, d) by a layer that expects (T, batch, d)."""
    import torch  # noqa: PLC0415

    layer = torch.nn.MultiheadAttention(8, 2).eval()
    x = torch.randn(3, 5, 8)
    other = x.clone()
    other[1:] = torch.randn(2, 5, 8)
    a, b = (layer(each, each, each, need_weights=False)[0] for each in (x, other))
    return {"change of example 0 when the others change": gap(a[0], b[0])}


def torch_empty_row() -> Figures:
    """One example without keys, weights asked for; loss of the other example alone."""
    import torch  # noqa: PLC0415

    figures = {}
    for need in (True, False):
        layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        x = torch.randn(2, 5, 8)
        padding = torch.zeros(2, 5, dtype=torch.bool)
        padding[0] = True
        layer(x, x, x, key_padding_mask=padding, need_weights=need)[0][1].sum().backward()
        share = float(torch.isnan(layer.in_proj_weight.grad).float().mean())
        figures[f"share of NaN in the gradient, need_weights={need}"] = share
    return figures


def torch_repeat() -> Figures:
    """Masks of a head by repeat: example 0 under the mask of another."""
    import torch  # noqa: PLC0415

    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 8)
    masks = torch.zeros(2, 5, 5, dtype=torch.bool)
    masks[1, :, 3:] = True

    def run(each: Any) -> Any:
        return layer(x, x, x, attn_mask=each, need_weights=False)[0]

    right = run(masks.repeat_interleave(2, dim=0))
    return {"change of the result by repeat": gap(run(masks.repeat(2, 1, 1)), right)}


def keras_query_mask() -> Figures:
    """A query mask that is given by name."""
    import keras  # noqa: PLC0415
    import torch  # noqa: PLC0415

    layer = keras.layers.MultiHeadAttention(2, 4)
    q, v = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    nobody = torch.zeros(2, 5, dtype=torch.bool)
    return {
        "change when every query is masked": gap(layer(q, v), layer(q, v, query_mask=nobody))
    }


def keras_empty_row() -> Figures:
    """A query without keys, with and without asking for weights."""
    import keras  # noqa: PLC0415
    import torch  # noqa: PLC0415

    layer = keras.layers.MultiHeadAttention(2, 4)
    q, v = torch.randn(1, 5, 8), torch.randn(1, 7, 8)
    layer(q, v)
    nothing = torch.zeros(1, 5, 7, dtype=torch.bool)
    with_weights = layer(q, v, attention_mask=nothing, return_attention_scores=True)[0]
    return {"change by asking": gap(layer(q, v, attention_mask=nothing), with_weights)}


def x_transformers() -> Figures:
    """A row without keys: its output and the weights that are returned for it."""
    import torch  # noqa: PLC0415
    from x_transformers.x_transformers import Attention  # noqa: PLC0415

    layer = Attention(16, dim_head=4, heads=2).eval()
    q, memory = torch.randn(1, 3, 16), torch.randn(1, 7, 16)
    nothing = torch.zeros(1, 7, dtype=torch.bool)
    found, seen = layer(q, context=memory, context_mask=nothing, return_intermediates=True)
    return {
        "largest entry of the output": float(found.abs().max()),
        "largest returned weight": float(seen.post_softmax_attn.max()),
    }


def x_transformers_top() -> Figures:
    """Fewer keys than `sparse_topk`: 1 where it raises."""
    import torch  # noqa: PLC0415
    from x_transformers.x_transformers import Attention  # noqa: PLC0415

    layer = Attention(16, dim_head=4, heads=2, sparse_topk=4).eval()
    try:
        layer(torch.randn(1, 3, 16), context=torch.randn(1, 3, 16))
    except RuntimeError:
        return {"raises with 3 keys and sparse_topk=4": 1.0}
    return {"raises with 3 keys and sparse_topk=4": 0.0}


def x_transformers_orthogonal() -> Figures:
    """Earlier rows of causal layers when the last token changes."""
    import torch  # noqa: PLC0415
    from x_transformers import Decoder  # noqa: PLC0415

    figures = {}
    for name, options in (
        ("plain", {}),
        ("orthog_residual", {"orthog_residual": True}),
        ("attn_orthog_projected_values", {"attn_orthog_projected_values": True}),
    ):
        torch.manual_seed(0)
        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=4, **options).eval()
        x = torch.randn(1, 9, 16)
        other = x.clone()
        other[:, -1] = torch.randn(16)
        figures[f"change of the rows before, {name}"] = gap(
            layers(x)[:, :-1], layers(other)[:, :-1]
        )
    return figures


def x_transformers_streams() -> Figures:
    """What the parameters that mix residual streams can do."""
    import torch  # noqa: PLC0415
    from x_transformers.x_transformers import HyperConnection  # noqa: PLC0415

    layer = HyperConnection(16, layer_index=0, num_residual_streams=3)
    x = torch.randn(2 * 3, 5, 16)
    before = layer.prepare(x)[1]
    with torch.no_grad():
        layer.static_alpha[:, 1:] = 9.0 * torch.randn(3, 3)
    return {
        "change of the mixed streams with another mixing matrix": gap(
            before, layer.prepare(x)[1]
        )
    }


def x_transformers_left() -> Figures:
    """Content of padding on the left, which the mask forbids, in three options."""
    import torch  # noqa: PLC0415
    from x_transformers import Decoder  # noqa: PLC0415

    figures = {}
    for name, options in (
        ("plain", {}),
        ("selective", {"attn_selective": True}),
        ("shift_tokens", {"shift_tokens": 1}),
    ):
        torch.manual_seed(0)
        layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=4, **options).eval()
        x = torch.randn(1, 9, 16)
        mask = torch.arange(9)[None] >= 3
        other = x.clone()
        other[:, :3] = torch.randn(1, 3, 16)
        a, b = (layers(each, mask=mask)[:, 3:] for each in (x, other))
        figures[f"change of real rows, {name}"] = gap(a, b)
    return figures


# name -> (module that must be installed, reproduction)
EVIDENCE: dict[str, tuple[str, Callable[[], Figures]]] = {
    **{
        name: ("transformers", each)
        for name, each in {**TRANSFORMERS, **KINDS, **STREAMS}.items()
    },
    "opennmt copy": ("onmt", opennmt_copy),
    "opennmt coverage": ("onmt", opennmt_coverage),
    "opennmt axes": ("onmt", opennmt_axes),
    "joeynmt": ("joeynmt", joeynmt),
    "opennmt parallel": ("onmt", opennmt_parallel),
    "allennlp": ("allennlp_light", allennlp),
    "allennlp one key": ("allennlp_light", allennlp_one_key),
    "d2l": ("d2l", textbook),
    "torch batch first": ("torch", torch_batch_first),
    "torch empty row": ("torch", torch_empty_row),
    "torch repeat": ("torch", torch_repeat),
    "keras query mask": ("keras", keras_query_mask),
    "keras empty row": ("keras", keras_empty_row),
    "x-transformers empty row": ("x_transformers", x_transformers),
    "x-transformers top": ("x_transformers", x_transformers_top),
    "x-transformers orthogonal": ("x_transformers", x_transformers_orthogonal),
    "x-transformers streams": ("x_transformers", x_transformers_streams),
    "x-transformers left padding": ("x_transformers", x_transformers_left),
}


def measured(modules: set[str] | None = None, seed: int = 0) -> dict[str, Any]:
    """Run every reproduction of these modules, or of all that are installed."""
    import torch  # noqa: PLC0415

    figures: dict[str, Any] = {}
    for name, (module, function) in EVIDENCE.items():
        if modules is not None and module not in modules:
            continue
        figures[name] = {"what": _said(function)}
        if importlib.util.find_spec(module) is None:
            figures[name]["skipped"] = f"{module} is not installed"
            continue
        torch.manual_seed(seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = function()
        except Exception as error:
            figures[name]["failed"] = f"{type(error).__name__}: {error}"
            continue
        figures[name]["figures"] = {k: float(f"{v:.3g}") for k, v in found.items()}
    return figures


def _said(function: Callable[[], Figures]) -> str:
    return (function.__doc__ or "").strip()
