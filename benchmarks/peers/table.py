"""The table of whom the contract is asked: one row an attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import regard as rg
from peers.attentions import (
    allennlp,
    joeynmt,
    keras_attention,
    keras_multi_head,
    opennmt,
    torch_mha,
    torch_sdpa,
    x_transformers,
)
from regard.testing import Subject

__all__ = ["PEERS", "Peer"]


@dataclass(frozen=True)
class Peer:
    """One row of the table."""

    name: str
    package: str
    module: str
    """What must be importable."""

    called: str
    """How, in a sentence."""

    make: Callable[[], Subject]
    documented: Mapping[int, str] = field(default_factory=dict)
    """By clause: what the package's own documentation or source says about it."""


_FLOATS = "a floating-point mask is added to the scores, so it is not asked for here"
_TIMES_MASK = (
    "the source multiplies scores by the mask before the softmax, to limit errors from large "
    "numbers outside the mask"
)

PEERS = (
    Peer(
        "regard.attend, additive",
        "regard",
        "regard",
        "Boolean mask `(batch, T_dec, T_enc)`, True = may attend; on PyTorch tensors.",
        lambda: Subject.of(rg.attend, score="additive", library="torch"),
    ),
    Peer(
        "regard.multi_head, general",
        "regard",
        "regard",
        "Two heads over Luong's general score; on PyTorch tensors.",
        lambda: Subject.of(rg.multi_head, score="general", library="torch"),
    ),
    Peer(
        "regard.multi_head, projected",
        "regard",
        "regard",
        "Two heads behind the transformer's four projections; on PyTorch tensors.",
        lambda: Subject.of(rg.multi_head, projected=True, library="torch"),
    ),
    Peer(
        "regard.self_attention",
        "regard",
        "regard",
        "Query, key and value are three projections of one sequence; on PyTorch tensors.",
        lambda: Subject.of(rg.self_attention, library="torch"),
    ),
    Peer(
        "regard.additive_attention",
        "regard",
        "regard",
        "One step of a batch; on PyTorch tensors.",
        lambda: Subject.of(rg.additive_attention, library="torch"),
    ),
    Peer(
        "the same on plain lists",
        "regard",
        "regard",
        "One step of one example.",
        lambda: Subject.of(rg.additive_attention),
    ),
    Peer(
        "regard.nn.AdditiveAttention",
        "regard",
        "regard",
        "The module, masks as above.",
        lambda: Subject.of(rg.nn.AdditiveAttention(5, 7, 11)),
    ),
    Peer(
        "regard.nn.MultiHeadAttention",
        "regard",
        "regard",
        "The module with two heads, masks as above.",
        lambda: Subject.of(
            rg.nn.MultiHeadAttention(6, 2),
            one_head=Subject.of(rg.nn.MultiHeadAttention(5, 1)),
        ),
    ),
    Peer(
        "regard.nn.BahdanauDecoder",
        "regard",
        "regard",
        "The decoder's contexts and weights; queries are formed inside it.",
        lambda: Subject.of(rg.nn.BahdanauDecoder(3, 5, 7, 11)),
    ),
    Peer(
        "torch.nn.MultiheadAttention",
        "torch",
        "torch",
        "`key_padding_mask`, True = ignore; `average_attn_weights=False`, `batch_first=True`.",
        lambda: torch_mha(weights=True),
        {
            4: "weights are averaged over heads by default; `need_weights=False` is the way to "
            "the optimised kernel",
            11: _FLOATS,
        },
    ),
    Peer(
        "the same, need_weights=False",
        "torch",
        "torch",
        "As above, weights never asked for.",
        lambda: torch_mha(weights=False),
        {11: _FLOATS},
    ),
    Peer(
        "scaled_dot_product_attention",
        "torch",
        "torch",
        "`attn_mask (batch, T_dec, T_enc)`, True = may attend.",
        torch_sdpa,
        {11: f"`attn_mask` need only be broadcastable; {_FLOATS}"},
    ),
    Peer(
        "keras Attention",
        "keras",
        "keras",
        "`layer([query, value, key], mask=[None, value_mask])`, True = may attend; on PyTorch, "
        "where it computes in float32.",
        lambda: keras_attention("Attention"),
    ),
    Peer(
        "keras AdditiveAttention",
        "keras",
        "keras",
        "As above. The score is `sum(scale * tanh(query + key))`; its oracle is that.",
        lambda: keras_attention("AdditiveAttention"),
    ),
    Peer(
        "keras MultiHeadAttention",
        "keras",
        "keras",
        "`layer(query, value, key, attention_mask=...)`, True = may attend; on PyTorch.",
        keras_multi_head,
        {
            4: "scores cannot be asked for where flash attention is on",
            11: "`attention_mask` is cast to boolean and may lack batch and head axes",
        },
    ),
    Peer(
        "joeynmt BahdanauAttention",
        "joeynmt",
        "joeynmt",
        "One step; `compute_proj_keys(keys)` before every call; mask required, 1 = valid.",
        lambda: joeynmt("Bahdanau"),
        {
            5: "the projected keys stay on the module, so a call without a new "
            "`compute_proj_keys` reads the old ones"
        },
    ),
    Peer(
        "joeynmt LuongAttention",
        "joeynmt",
        "joeynmt",
        "As above.",
        lambda: joeynmt("Luong"),
        {5: "as above"},
    ),
    Peer(
        "onmt GlobalAttention, mlp",
        "OpenNMT-py",
        "onmt",
        "`src_len` lengths; the output layer is set to pass the context through.",
        lambda: opennmt("mlp"),
    ),
    Peer(
        "onmt GlobalAttention, general",
        "OpenNMT-py",
        "onmt",
        "As above; the context comes back through tanh, and so does its oracle's.",
        lambda: opennmt("general"),
    ),
    Peer(
        "allennlp AdditiveAttention",
        "allennlp-light",
        "allennlp_light",
        "One step; `matrix_mask`, True = may attend; context by its `weighted_sum`.",
        lambda: allennlp("Additive"),
        {11: "a mask need only be broadcastable"},
    ),
    Peer(
        "allennlp DotProductAttention",
        "allennlp-light",
        "allennlp_light",
        "As above.",
        lambda: allennlp("DotProduct"),
        {1: _TIMES_MASK, 11: "a mask need only be broadcastable"},
    ),
    Peer(
        "x-transformers Attention",
        "x-transformers",
        "x_transformers",
        "`context_mask`, True = may attend; weights by `return_intermediates=True`; its "
        "softmax is in float32 for every input.",
        x_transformers,
    ),
)
