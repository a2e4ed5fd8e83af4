"""Attention of JoeyNMT, OpenNMT-py and AllenNLP."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

from real_code.subject import Subject

__all__ = ["allennlp", "joeynmt", "opennmt", "placeholders"]

_HEAD = "import torch\nfrom torch import nn\n"
# Imported on the way to the attention and used by none of it: trackers, taggers, matchers.
_UNUSED = (
    "lazy_importer",
    "tensorboard",
    "torch.utils.tensorboard",
    "spacy",
    "ahocorasick",
    "fasttext",
    "sacrebleu",
    "ctranslate2",
    "flask",
    "waitress",
    "pyonmttok",
)


def placeholders() -> None:
    """Stand-ins for modules that a peer imports at its top and that are not installed."""
    for name in _UNUSED:
        try:
            importlib.import_module(name)
        except ImportError:
            sys.modules[name] = mock.MagicMock(name=name)


_STEP = {
    "query": "batch 1 d_s",
    "mask": "batch 1 T_enc",
    "values": "batch T_enc d_h",
}
_STEP_OUT = {
    "returns": [
        {"name": "context", "axes": "batch 1 d_h"},
        {"name": "weights", "axes": "batch 1 T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
}


def joeynmt() -> Iterator[Subject]:
    """Both scores, the keys projected at every call and once; heads; layers; the decoder."""
    placeholders()
    text = (
        _HEAD + "from joeynmt.attention import {name}\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_attn, d_h, d_s):\n"
        "        super().__init__()\n"
        "        self.attention = {made}\n\n"
        "    def forward(self, query, mask, values):\n"
        "        {when}self.attention.compute_proj_keys(values)\n"
        "        return self.attention(query=query, mask=mask, values=values)\n"
    )
    made = {
        "BahdanauAttention": ("BahdanauAttention(d_attn, d_h, d_s)", "additive"),
        "LuongAttention": ("LuongAttention(d_s, d_h)", "general"),
    }
    for name, (call, score) in made.items():
        for what, when in (
            ("", ""),
            (" (keys projected once)", "if self.attention.proj_keys is None:\n            "),
        ):
            contract = {
                "init": {"d_attn": "d_attn", "d_h": "d_h", "d_s": "d_s"},
                "inputs": _STEP,
                "kinds": {"mask": "keep"},
                **_STEP_OUT,
                "score": score,
            }
            source = text.format(name=name, made=call, when=when)
            yield _subject("joeynmt", f"{name}{what}", source, contract)
    source = (
        _HEAD + "from joeynmt.transformer_layers import MultiHeadedAttention\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.attention = MultiHeadedAttention(heads, d_model, 0.0)\n\n"
        "    def forward(self, k, v, q, mask):\n"
        "        return self.attention(k, v, q, mask=mask, return_weights=True)\n"
    )
    contract = {
        "init": {"heads": "heads", "d_model": "d_model"},
        "inputs": {
            "k": "batch T_enc d_model",
            "v": "batch T_enc d_model",
            "q": "batch T_dec d_model",
            "mask": "batch 1 T_enc",
        },
        "kinds": {"mask": "keep"},
        "returns": [
            {"name": "context", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
    yield _subject("joeynmt", "MultiHeadedAttention", source, contract)
    source = (
        _HEAD + "from joeynmt.transformer_layers import TransformerEncoderLayer\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.layer = TransformerEncoderLayer(d_model, ff_size=52, num_heads=heads)\n\n"
        "    def forward(self, x, mask):\n"
        "        return self.layer(x, mask)\n"
    )
    contract = {
        "init": {"heads": "heads", "d_model": "d_model"},
        "inputs": {"x": "batch T d_model", "mask": "batch 1 T"},
        "kinds": {"mask": "keep"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
    }
    yield _subject("joeynmt", "TransformerEncoderLayer", source, contract)
    yield from _joeynmt_layers()
    for score in ("bahdanau", "luong"):
        source = (
            _HEAD + "from types import SimpleNamespace\n\n"
            "from joeynmt.decoders import RecurrentDecoder\n\n\n"
            "class Wrapped(nn.Module):\n"
            "    def __init__(self, d_emb, d_s, d_h, vocab):\n"
            "        super().__init__()\n"
            "        self.decoder = RecurrentDecoder(\n"
            "            rnn_type='gru', emb_size=d_emb, hidden_size=d_s,\n"
            "            encoder=SimpleNamespace(output_size=d_h), vocab_size=vocab,\n"
            f"            attention='{score}', num_layers=1, dropout=0.0,\n"
            "            hidden_dropout=0.0, init_hidden='bridge', input_feeding=True,\n"
            "        )\n\n"
            "    def forward(self, inputs, encoder, last, mask):\n"
            "        found = self.decoder(inputs, encoder, last, mask, inputs.shape[1])\n"
            "        return found[3], found[2], found[0]\n"
        )
        contract = {
            "init": {n: n for n in ("d_emb", "d_s", "d_h", "vocab")},
            "inputs": {
                "inputs": "batch T_dec d_emb",
                "encoder": "batch T_enc d_h",
                "last": "batch d_h",
                "mask": "batch 1 T_enc",
            },
            "kinds": {"mask": "keep"},
            "returns": [
                {"name": "states", "axes": "batch T_dec d_s", "role": "attentional"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
                {"name": "logits", "axes": "batch T_dec vocab"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "additive" if score == "bahdanau" else "general",
            "positions": "recurrent",
            "convention": "luong",
        }
        yield _subject("joeynmt", f"RecurrentDecoder ({score})", source, contract)


def _joeynmt_layers() -> Iterator[Subject]:
    """The transformer's layers in both places of the norm."""
    for norm in ("pre", "post"):
        source = (
            _HEAD + "from joeynmt.transformer_layers import TransformerEncoderLayer\n\n\n"
            "class Wrapped(nn.Module):\n"
            "    def __init__(self, heads, d_model):\n"
            "        super().__init__()\n"
            "        self.layer = TransformerEncoderLayer(\n"
            "            d_model, ff_size=52, num_heads=heads, alpha=0.9,\n"
            f"            layer_norm='{norm}', activation='gelu',\n"
            "        )\n\n"
            "    def forward(self, x, mask):\n"
            "        return self.layer(x, mask)\n"
        )
        contract: dict[str, Any] = {
            "init": {"heads": "heads", "d_model": "d_model"},
            "inputs": {"x": "batch T d_model", "mask": "batch 1 T"},
            "kinds": {"mask": "keep"},
            "returns": [{"name": "context", "axes": "batch T d_model"}],
        }
        yield _subject("joeynmt", f"TransformerEncoderLayer ({norm})", source, contract)
        source = (
            _HEAD + "from joeynmt.helpers import subsequent_mask\n"
            "from joeynmt.transformer_layers import TransformerDecoderLayer\n\n\n"
            "class Wrapped(nn.Module):\n"
            "    def __init__(self, heads, d_model):\n"
            "        super().__init__()\n"
            "        self.layer = TransformerDecoderLayer(\n"
            f"            d_model, ff_size=52, num_heads=heads, layer_norm='{norm}'\n"
            "        )\n\n"
            "    def forward(self, x, memory, mask):\n"
            "        later = subsequent_mask(x.shape[1]).expand(len(x), -1, -1)\n"
            "        return self.layer(x, memory, mask, later, return_attention=True)\n"
        )
        contract = {
            "init": {"heads": "heads", "d_model": "d_model"},
            "inputs": {
                "x": "batch T_dec d_model",
                "memory": "batch T_enc d_model",
                "mask": "batch 1 T_enc",
            },
            "kinds": {"mask": "keep"},
            "returns": [
                {"name": "context", "axes": "batch T_dec d_model"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "positions": "recurrent",  # rows know the rows before them
        }
        yield _subject("joeynmt", f"TransformerDecoderLayer ({norm})", source, contract)


def opennmt() -> Iterator[Subject]:
    """The three scores, coverage, decoders with copying, and its heads."""
    placeholders()
    text = (
        _HEAD + "from onmt.modules.global_attention import GlobalAttention\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_model):\n"
        "        super().__init__()\n"
        "        self.attention = GlobalAttention(d_model, attn_type='{kind}'{more})\n\n"
        "    def forward(self, src, enc_out, src_len{argument}):\n"
        "        return self.attention(src, enc_out, src_len=src_len{given})\n"
    )
    scores = {"dot": "dot", "general": "general", "mlp": "additive"}
    plain: dict[str, Any] = {
        "init": {"d_model": "d_model"},
        "inputs": {
            "src": "batch T_dec d_model",
            "enc_out": "batch T_enc d_model",
            "src_len": "batch",
        },
        "kinds": {"src_len": "lengths"},
        "returns": [
            {"name": "state", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
    }
    for kind, score in scores.items():
        source = text.format(kind=kind, more="", argument="", given="")
        yield _subject("onmt", f"GlobalAttention ({kind})", source, {**plain, "score": score})
    source = text.format(kind="general", more=", attn_func='sparsemax'", argument="", given="")
    yield _subject("onmt", "GlobalAttention (sparsemax)", source, plain)
    source = text.format(
        kind="mlp", more=", coverage=True", argument=", coverage", given=", coverage=coverage"
    )
    contract = {
        **plain,
        "inputs": {**plain["inputs"], "coverage": "batch T_enc"},
        "kinds": {**plain["kinds"], "coverage": "bias"},
        "score": "additive",
    }
    yield _subject("onmt", "GlobalAttention (coverage given)", source, contract)
    decoder = (
        _HEAD + "from onmt.decoders.decoder import {kind}\n\n\n"
        "class Words(nn.Module):\n"
        "    def __init__(self, size):\n"
        "        super().__init__()\n"
        "        self.embedding_size = size\n\n"
        "    def forward(self, tgt, step=None):\n"
        "        return tgt\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_emb, d_model):\n"
        "        super().__init__()\n"
        "        self.decoder = {kind}(\n"
        "            'GRU', False, 1, d_model, attn_type='general', embeddings=Words(d_emb),\n"
        "            copy_attn={copy}, copy_attn_type='general', coverage_attn={coverage},\n"
        "        )\n\n"
        "    def forward(self, tgt, enc_out, last, src_len):\n"
        "        self.decoder.init_state(enc_out, enc_out, last[None])\n"
        "        states, weights = self.decoder(tgt, enc_out, src_len=src_len)\n"
        "        return states, {weights}\n"
    )
    mixed: dict[str, Any] = {
        "init": {"d_emb": "d_emb", "d_model": "d_model"},
        "inputs": {
            "tgt": "batch T_dec d_emb",
            "enc_out": "batch T_enc d_model",
            "last": "batch d_model",
            "src_len": "batch",
        },
        "kinds": {"src_len": "lengths"},
        "returns": [
            {"name": "states", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "positions": "recurrent",
    }
    turned = "weights['{0}'].transpose(0, 1)"
    for kind, weights in (("StdRNNDecoder", "weights['{0}']"), ("InputFeedRNNDecoder", turned)):
        for what, copy, coverage, shown in (
            ("", False, False, "std"),
            (" (copying)", True, False, "copy"),
            (" (coverage)", False, True, "std"),
        ):
            if kind == "StdRNNDecoder" and coverage:
                continue  # it refuses coverage
            source = decoder.format(
                kind=kind, copy=copy, coverage=coverage, weights=weights.format(shown)
            )
            contract = {**mixed}
            yield _subject("onmt", f"{kind}{what}", source, contract)
    source = decoder.format(
        kind="InputFeedRNNDecoder", copy=False, coverage=False, weights="weights['std']"
    )
    name = "InputFeedRNNDecoder (axes as documented)"
    yield _subject("onmt", name, source, mixed)
    heads = (
        _HEAD + "from onmt.modules.multi_headed_attn import MultiHeadedAttention\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.attention = MultiHeadedAttention(\n"
        "            heads, d_model, dropout=0.0, attn_type='{of}', "
        "self_attn_type='scaled-dot'{more}\n"
        "        )\n\n"
        "    def forward(self, {arguments}, mask):\n"
        "        return self.attention({given}, mask=mask, return_attn=True)\n"
    )
    cross = {
        "init": {"heads": "heads", "d_model": "d_model"},
        "inputs": {
            "key": "batch T_enc d_model",
            "value": "batch T_enc d_model",
            "query": "batch T_dec d_model",
            "mask": "batch 1 1 T_enc",
        },
        "kinds": {"mask": "drop"},
        "returns": [
            {"name": "context", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch heads T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
    }
    source = heads.format(
        of="context", more="", arguments="key, value, query", given="key, value, query"
    )
    yield _subject("onmt", "MultiHeadedAttention (context)", source, cross)
    own = {
        **cross,
        "inputs": {"x": "batch T d_model", "mask": "batch 1 1 T"},
        "returns": [
            {"name": "context", "axes": "batch T d_model"},
            {"name": "weights", "axes": "batch heads T T"},
        ],
    }
    for what, more, changes in (
        ("self", "", {}),
        ("rotary", ", max_relative_positions=-1", {"positions": "rotary"}),
        ("alibi", ", max_relative_positions=-2", {"positions": "alibi"}),
        ("relative", ", max_relative_positions=4", {"positions": "relative", "score": None}),
        (
            "buckets",
            ", max_relative_positions=8, relative_positions_buckets=8",
            {"positions": "relative", "score": None},
        ),
        ("fewer key heads", ", num_kv=2", {}),
    ):
        source = heads.format(of="self", more=more, arguments="x", given="x, x, x")
        contract = {k: v for k, v in {**own, **changes}.items() if v is not None}
        yield _subject("onmt", f"MultiHeadedAttention ({what})", source, contract)

    yield from _opennmt_layers()


def _opennmt_layers() -> Iterator[Subject]:
    """Averages, convolutional steps, and layers of the transformer."""
    source = (
        _HEAD + "from onmt.modules.average_attn import AverageAttention\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, d_model):\n"
        "        super().__init__()\n"
        "        self.attention = AverageAttention(d_model, dropout=0.0{more})\n\n"
        "    def forward(self, x):\n"
        "        return self.attention(x)\n"
    )
    contract: dict[str, Any] = {
        "init": {"d_model": "d_model"},
        "inputs": {"x": "batch T d_model"},
        "returns": [
            {"name": "gated", "axes": "batch T d_model"},
            {"name": "averages", "axes": "batch T d_model"},
        ],
        "causal": "top_left",
        "positions": "recurrent",
    }
    for what, more in (("", ""), (" (feed-forward)", ", aan_useffn=True")):
        yield _subject("onmt", f"AverageAttention{what}", source.format(more=more), contract)
    source = (
        _HEAD + "from onmt.modules.conv_multi_step_attention import ConvMultiStepAttention\n"
        "\n\nclass Wrapped(nn.Module):\n"
        "    def __init__(self, d_model):\n"
        "        super().__init__()\n"
        "        self.attention = ConvMultiStepAttention(d_model)\n\n"
        "    def forward(self, words, steps, keys, values):\n"
        "        words, steps = (x.transpose(1, 2)[..., None] for x in (words, steps))\n"
        "        keys, values = (x.transpose(1, 2) for x in (keys, values))\n"
        "        context, weights = self.attention(words, steps, keys, values)\n"
        "        return context.squeeze(3).transpose(1, 2), weights\n"
    )
    contract = {
        "init": {"d_model": "d_model"},
        "inputs": {
            "words": "batch T_dec d_model",
            "steps": "batch T_dec d_model",
            "keys": "batch T_enc d_model",
            "values": "batch T_enc d_model",
        },
        "returns": [
            {"name": "context", "axes": "batch T_dec d_model"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
    }
    yield _subject("onmt", "ConvMultiStepAttention", source, contract)
    encoder = (
        _HEAD + "from onmt.encoders.transformer import TransformerEncoderLayer\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.layer = TransformerEncoderLayer(d_model, heads, 52, 0.0, 0.0{more})\n\n"
        "    def forward(self, x, mask):\n"
        "        n = x.shape[1]\n"
        "        return self.layer(x, mask[:, None, None, :].expand(-1, 1, n, -1))\n"
    )
    own = {
        "init": {"heads": "heads", "d_model": "d_model"},
        "inputs": {"x": "batch T d_model", "mask": "batch T"},
        "kinds": {"mask": "drop"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
    }
    for what, more in (
        ("", ""),
        (" (parallel residual)", ", parallel_residual=True"),
        (" (rms)", ", layer_norm='rms'"),
    ):
        source = encoder.format(more=more)
        yield _subject("onmt", f"TransformerEncoderLayer{what}", source, own)
    decoder = (
        _HEAD + "from onmt.decoders.transformer import TransformerDecoderLayer\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.layer = TransformerDecoderLayer(d_model, heads, 52, 0.0, 0.0{more})\n\n"
        "    def forward(self, x, memory, mask):\n"
        "        real = torch.zeros(len(x), 1, x.shape[1], dtype=torch.bool)\n"
        "        found = self.layer(x, memory, mask[:, None, :], real)\n"
        "        return found[0]\n"
    )
    both = {
        **own,
        "inputs": {
            "x": "batch T_dec d_model",
            "memory": "batch T_enc d_model",
            "mask": "batch T_enc",
        },
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
        "positions": "recurrent",  # rows know the rows before them
    }
    for what, more in (
        ("", ""),
        (" (parallel residual)", ", parallel_residual=True"),
        (" (average)", ", self_attn_type='average'"),
    ):
        source = decoder.format(more=more)
        yield _subject("onmt", f"TransformerDecoderLayer{what}", source, both)


def allennlp() -> Iterator[Subject]:
    """Every attention of one query, and every matrix attention with its masked softmax."""
    made = {
        "AdditiveAttention": ("AdditiveAttention(d_s, d_h)", "d_h", "additive"),
        "BilinearAttention": ("BilinearAttention(d_s, d_h)", "d_h", "general"),
        "CosineAttention": ("CosineAttention()", "d_s", "cosine"),
        "DotProductAttention": ("DotProductAttention()", "d_s", "dot"),
        "LinearAttention": ("LinearAttention(d_s, d_s, 'x,y')", "d_s", None),
        "ScaledDotProductAttention": ("ScaledDotProductAttention(d_s)", "d_s", "scaled_dot"),
    }
    for name, (call, keys, score) in made.items():
        source = (
            f"{_HEAD}from allennlp_light.modules.attention import {name}\n\n\n"
            "class Wrapped(nn.Module):\n"
            "    def __init__(self, d_s, d_h):\n"
            "        super().__init__()\n"
            f"        self.attention = {call}\n\n"
            "    def forward(self, vector, matrix, matrix_mask):\n"
            "        return self.attention(vector, matrix, matrix_mask)\n"
        )
        contract = {
            "init": {"d_s": "d_s", "d_h": "d_h"},
            "inputs": {
                "vector": "batch d_s",
                "matrix": f"batch T_enc {keys}",
                "matrix_mask": "batch T_enc",
            },
            "kinds": {"matrix_mask": "keep"},
            "returns": [{"name": "weights", "axes": "batch T_enc"}],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": score,
        }
        contract = {k: v for k, v in contract.items() if v is not None}
        yield _subject("allennlp_light", name, source, contract)
    pairs = {
        "BilinearMatrixAttention": ("BilinearMatrixAttention(d_s, d_h)", "d_h"),
        "CosineMatrixAttention": ("CosineMatrixAttention()", "d_s"),
        "DotProductMatrixAttention": ("DotProductMatrixAttention()", "d_s"),
        "LinearMatrixAttention": ("LinearMatrixAttention(d_s, d_s, 'x,y,x*y')", "d_s"),
        "ScaledDotProductMatrixAttention": ("ScaledDotProductMatrixAttention()", "d_s"),
    }
    for name, (call, keys) in pairs.items():
        source = (
            f"{_HEAD}from allennlp_light.modules.matrix_attention import {name}\n"
            "from allennlp_light.nn.util import masked_softmax, weighted_sum\n\n\n"
            "class Wrapped(nn.Module):\n"
            "    def __init__(self, d_s, d_h):\n"
            "        super().__init__()\n"
            f"        self.attention = {call}\n\n"
            "    def forward(self, query, memory, mask):\n"
            "        scores = self.attention(query, memory)\n"
            "        weights = masked_softmax(scores, mask)\n"
            "        return weighted_sum(memory, weights), weights\n"
        )
        contract = {
            "init": {"d_s": "d_s", "d_h": "d_h"},
            "inputs": {
                "query": "batch T_dec d_s",
                "memory": f"batch T_enc {keys}",
                "mask": "batch T_enc",
            },
            "kinds": {"mask": "keep"},
            "returns": [
                {"name": "context", "axes": f"batch T_dec {keys}"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
        }
        yield _subject("allennlp_light", name, source, contract)

    source = (
        _HEAD + "from allennlp_light.modules.seq2seq_encoders.pytorch_transformer_wrapper "
        "import PytorchTransformer\n\n\n"
        "class Wrapped(nn.Module):\n"
        "    def __init__(self, heads, d_model):\n"
        "        super().__init__()\n"
        "        self.layers = PytorchTransformer(d_model, 1, 52, heads{more})\n\n"
        "    def forward(self, x, mask):\n"
        "        return self.layers(x, mask)\n"
    )
    contract = {
        "init": {"heads": "heads", "d_model": "d_model"},
        "inputs": {"x": "batch T d_model", "mask": "batch T"},
        "kinds": {"mask": "keep"},
        "returns": [{"name": "context", "axes": "batch T d_model"}],
    }
    for what, more, changes in (
        ("", "", {}),
        (" (sines)", ", positional_encoding='sinusoidal'", {"positions": "absolute"}),
        (" (table)", ", positional_encoding='embedding'", {"positions": "absolute"}),
    ):
        whole = {**contract, **changes}
        name = f"PytorchTransformer{what}"
        yield _subject("allennlp_light", name, source.format(more=more), whole)


def _subject(library: str, name: str, source: str, contract: dict[str, Any]) -> Subject:
    whole = {"target": "wrapped.py:Wrapped", **contract}
    return Subject(f"{library}/{name}", library, library, source, "Wrapped", whole)
