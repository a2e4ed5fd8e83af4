"""What the words of the field say: roles of arguments, meanings of axes, sizes of a layer.

Everything here reads a name or a word and nothing else. A name is split into its parts
(``encoder_outputs``, ``encoderOutputs`` and ``enc_outs`` alike), so that one table serves
tutorials, libraries and papers.
"""

import re
from typing import Literal

__all__ = ["Axis", "Role", "axis_of", "parts", "role_of", "scalar_of", "size_of"]

Role = Literal[
    "query", "key", "value", "self", "mask", "lengths", "weights", "bias", "past", ""
]
Axis = Literal[
    "batch", "query", "key", "time", "heads", "kv_heads", "layers", "beam", "feature"
]

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_MASKS = (
    *(
        "mask",
        "masks",
        "pad",
        "padding",
        "padded",
        "valid",
        "keep",
        "ignore",
        "ignored",
        "real",
    ),
    *("allowed", "blocked", "visible", "hide", "masked", "present", "drop", "invalid"),
    *(
        "adj",
        "adjacency",
        "forbidden",
        "attendable",
        "observed",
        "missing",
        "exclude",
        "excluded",
    ),
)
_LENGTHS = ("lengths", "lens", "length", "len", "lengthes", "sizes", "counts")
_QUERIES = (
    *("q", "qs", "query", "queries", "state", "states", "hidden", "s", "dec", "decoder"),
    *("cell", "target", "tgt", "trg", "latents", "latent", "ht", "st", "out", "question", "y"),
    *("decoded", "probe", "probes", "condition", "slots"),
)
_KEYS = (
    *(
        "k",
        "ks",
        "key",
        "keys",
        "memory",
        "memories",
        "mem",
        "bank",
        "enc",
        "encoder",
        "source",
    ),
    *("src", "context", "contexts", "ctx", "annotations", "encoded", "encodings", "image"),
    *("pixels", "features", "near", "neighbours", "neighbors", "kv", "outputs", "characters"),
    *("history", "document", "passage", "ahead", "back", "regions", "encs", "sources"),
)
_VALUES = ("v", "vs", "value", "values", "val", "vals")
_WEIGHTS = ("alpha", "alphas", "attention", "attn", "alignment", "align", "coverage", "weights")
_PARTS = frozenset({"k", "v", "key", "keys", "value", "values", "kv"})
_PAST = ("past", "cache", "cached", "prev", "previous", "last", "old")


def parts(name: str) -> tuple[str, ...]:
    """Split a name into lower-case parts.

    >>> parts("encoderOutputs"), parts("src_key_padding_mask")
    (('encoder', 'outputs'), ('src', 'key', 'padding', 'mask'))
    """
    pieces = re.split(r"[_\W]+", _CAMEL.sub("_", name))
    return tuple(p.lower() for p in pieces if p)


def role_of(name: str) -> Role:  # noqa: PLR0911 - one a role
    """Role of an argument by its name alone, "" where the name says nothing.

    >>> role_of("encoder_outputs"), role_of("prev_hidden"), role_of("src_lengths")
    ('key', 'query', 'lengths')
    """
    pieces = parts(name)
    has = set(pieces).intersection
    if not pieces:
        return ""
    if pieces[-1] in _LENGTHS or has({"lengths", "lens"}):
        return "lengths"
    if has(_MASKS):
        return "mask"
    if pieces[-1] == "bias":
        return "bias"
    if (pieces[0] in _PAST and pieces[-1] in _PARTS) or (
        has({"past", "cache", "cached"}) and has({*_KEYS, *_VALUES})
    ):
        return "past"
    if has({"coverage", "cumulative", "cum", "alpha", "alphas", "alignment"}) or (
        has({*_PAST, "weights"}) and has({*_WEIGHTS, "weight", "attend"} - {"weights"})
    ):
        return "weights"
    if pieces in (("h", "s"), ("hs",), ("h", "j"), ("h", "i"), ("enc",)):
        return "key"
    if pieces in (("h", "t"), ("ht",), ("s", "t"), ("st",), ("s", "prev")):
        return "query"
    if pieces in (("x",), ("inputs",), ("input",), ("tokens",), ("hidden", "states")):
        return "self"
    # The most specific part decides: encoder_hidden is no decoder state.
    if has({"encoder", "enc", "source", "src", "memory"}) and not has({"decoder", "dec"}):
        return "key"
    for role, table in (("query", _QUERIES), ("value", _VALUES), ("key", _KEYS)):
        if has(table):
            return role  # type: ignore[return-value]  # the table's own literals
    return ""


_AXES: tuple[tuple[Axis, frozenset[str]], ...] = (
    ("batch", frozenset({"batch", "b", "bs", "bsz", "bz", "batchsize", "examples", "nbatch"})),
    (
        "query",
        frozenset(
            {
                *(
                    "t_dec",
                    "tgt_len",
                    "trg_len",
                    "q_len",
                    "t_q",
                    "tq",
                    "lq",
                    "l_q",
                    "n_q",
                    "nq",
                ),
                *("queries", "target_len", "query_len", "len_q", "tgt", "trg", "q", "t_out"),
                *("num_queries", "n_queries", "dec_len", "tgt_length", "query_length", "seq_q"),
                *("q_length", "t_tgt", "target_length", "seq_len_q", "t_y", "ty", "new", "l"),
            }
        ),
    ),
    (
        "key",
        frozenset(
            {
                *("t_enc", "src_len", "k_len", "kv_len", "t_k", "tk", "lk", "l_k", "n_k", "nk"),
                *("keys", "source_len", "key_len", "len_k", "src", "k", "t_in", "memory_len"),
                *(
                    "num_keys",
                    "n_keys",
                    "enc_len",
                    "src_length",
                    "source_length",
                    "seq_k",
                    "tx",
                ),
                *(
                    "max_src_len",
                    "seq_len_k",
                    "t_x",
                    "key_length",
                    "len_v",
                    "t_src",
                    "s",
                    "pixels",
                ),
                *("srclen", "n_src", "memory", "num_pixels", "regions", "max_input_length"),
            }
        ),
    ),
    (
        "time",
        frozenset(
            {
                *(
                    "t",
                    "n",
                    "time",
                    "steps",
                    "step",
                    "seq",
                    "seq_len",
                    "seqlen",
                    "len",
                    "length",
                ),
                *("tokens", "words", "positions", "sequence", "max_len", "m", "time_steps"),
                *(
                    "sequence_length",
                    "seq_length",
                    "maxlen",
                    "timesteps",
                    "num_tokens",
                    "i",
                    "j",
                ),
                *("max_length", "nodes", "frames", "patches", "n_tokens", "max_time", "j"),
            }
        ),
    ),
    ("kv_heads", frozenset({"kv_heads", "n_kv_heads", "num_kv_heads", "kv_groups", "hkv"})),
    (
        "heads",
        frozenset(
            {"heads", "n_heads", "num_heads", "nh", "nheads", "head", "n_head", "num_head"}
        ),
    ),
    (
        "layers",
        frozenset({"layers", "n_layers", "num_layers", "layer", "nlayers"}),
    ),
    ("beam", frozenset({"beam", "beam_size", "k_beam", "n_beams", "beams", "hypotheses"})),
    (
        "feature",
        frozenset(
            {
                *(
                    "d",
                    "e",
                    "c",
                    "dim",
                    "width",
                    "size",
                    "hidden",
                    "features",
                    "channels",
                    "hs",
                ),
                *("d_model", "embed", "emb", "embed_dim", "embedding", "model_dim", "hid_dim"),
                *("hidden_size", "head_dim", "d_head", "d_k", "d_v", "depth", "units", "feat"),
                *(
                    "hidden_dim",
                    "dk",
                    "dv",
                    "d_h",
                    "d_s",
                    "d_emb",
                    "d_attn",
                    "d_q",
                    "head_size",
                ),
                *("n_embd", "n_in", "n_hid", "n_hidden", "d_in", "d_out", "in_dim", "emb_dim"),
                *("enc_hid_dim", "dec_hid_dim", "channel", "feature", "dh", "dims", "d_hidden"),
            }
        ),
    ),
)


_SHARED = frozenset({"kv", "key", "keys", "value", "values"})  # of whose heads there are few


def axis_of(word: str) -> Axis | None:  # noqa: PLR0911 - one a meaning
    """Meaning of one word of a shape such as ``(batch, T_enc, d_h)``.

    >>> axis_of("src len"), axis_of("B"), axis_of("enc hid dim"), axis_of("window")
    ('key', 'batch', 'feature', None)
    """
    plain = re.sub(r"[\s-]+", "_", word.strip().strip("*`'\"").lower())
    for axis, table in _AXES:
        if plain in table:
            return axis
    pieces = set(plain.split("_"))
    if pieces & {"batch", "batchsize", "bsz"}:
        return "batch"
    if pieces & {"head", "heads"} and not pieces & {"dim", "size", "d", "width"}:
        return "kv_heads" if pieces & _SHARED else "heads"
    if pieces & {"dim", "size", "width", "hid", "hidden", "features", "channels", "d", "units"}:
        return "feature"
    if pieces & {"len", "length", "steps", "seq", "time", "t"}:
        if pieces & {"src", "source", "enc", "memory", "key", "keys", "k"}:
            return "key"
        return "query" if pieces & {"tgt", "trg", "target", "dec", "query", "q"} else "time"
    return None


def size_of(name: str) -> tuple[str, bool]:  # noqa: PLR0911 - one a size
    """Canonical size that a constructor's argument means, and whether the name says whose.

    >>> size_of("dec_hid_dim"), size_of("n_key_heads"), size_of("width"), size_of("kernel")
    (('d_s', True), ('kv_heads', True), ('d_model', False), ('', False))
    """
    pieces = set(parts(name))
    plain = "_".join(parts(name))
    has = pieces.intersection
    found = _EXACT_SIZES.get(plain)
    if found is not None:
        return found
    sized = has(
        {"size", "dim", "dims", "width", "features", "hid", "hidden", "d", "units", "n"}
    )
    if has({"head", "heads"}):
        if has(_SHARED) and not has({"dim", "size", "width", "d"}):
            return "kv_heads", True
        if has({"dim", "size", "width", "d"}):
            return "d_head", True
        return "heads", True
    if has({"vocab", "vocabulary", "ntoken", "ntokens", "tokens"}):
        return "vocab", True
    if has({"layers", "layer"}) and has({"n", "num"}):
        return "layers", True
    if not sized:
        return "", False
    for table, size in _OWNERS:
        if has(table):
            return size, True
    return "d_model", False


_EXACT_SIZES: dict[str, tuple[str, bool]] = {
    **dict.fromkeys(("heads", "nhead", "n_head", "num_heads", "n_heads", "h"), ("heads", True)),
    **dict.fromkeys(("nheads", "num_attention_heads", "attention_heads"), ("heads", True)),
    **dict.fromkeys(
        ("n_kv", "n_kv_heads", "kv_heads", "num_key_value_heads"), ("kv_heads", True)
    ),
    **dict.fromkeys(("d_k", "dk", "d_head", "head_dim", "dim_head"), ("d_head", True)),
    **dict.fromkeys(("d_v", "dv", "value_width"), ("d_v", True)),
    **dict.fromkeys(("d_model", "embed_dim", "model_dim", "n_embd"), ("d_model", False)),
    **dict.fromkeys(("width", "size", "dim", "channels", "features", "c"), ("d_model", False)),
    **dict.fromkeys(("hidden_size", "hidden_dim", "hidden", "n_hidden"), ("d_model", False)),
    **dict.fromkeys(("in_channels", "input_size", "in_dim", "in_features"), ("d_model", False)),
    **dict.fromkeys(("units", "attention_dim", "attn_dim", "attn_size"), ("d_attn", False)),
    **dict.fromkeys(("n_hid", "nhid", "n_units", "num_units"), ("d_model", False)),
    **dict.fromkeys(("layers", "n_layers", "num_layers"), ("layers", True)),
    **dict.fromkeys(("beam", "beam_size", "beam_width", "n_beams"), ("beam", True)),
    **dict.fromkeys(("vocab", "vocab_size", "n_words", "n_vocab"), ("vocab", True)),
    **dict.fromkeys(("d_ff", "ff_dim", "ffn_dim", "dim_feedforward"), ("d_ff", True)),
}
_OWNERS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"emb", "embed", "embedding", "word", "input"}), "d_emb"),
    (frozenset({"attn", "attention", "att", "units", "align", "alignment"}), "d_attn"),
    (frozenset({"dec", "decoder", "query", "q", "state", "tgt", "target", "s"}), "d_s"),
    (frozenset({"value", "values", "v"}), "d_v"),
    (frozenset({"enc", "encoder", "memory", "key", "k", "src", "source", "context"}), "d_h"),
)


def scalar_of(name: str) -> str:  # noqa: PLR0911, PLR0912 - one a word
    """What an argument that is a plain number means: its value in the contract's form.

    >>> scalar_of("n_heads"), scalar_of("attn_dropout"), scalar_of("max_len")
    ('heads', '0.0', '64')
    """
    pieces = set(parts(name))
    plain = "_".join(parts(name))
    if pieces & {"dropout", "drop", "p"} and not pieces & {"heads"}:
        return "0.0"
    if pieces & {"window", "lookback", "span"}:
        return "3"
    if "kernel" in pieces:
        return "3"
    if pieces & {"filters", "filter"}:
        return "6"
    if pieces & {"max"} and pieces & {"len", "length", "seq", "positions", "position", "t"}:
        return "64"
    if plain in ("block_size", "context_length", "max_position_embeddings", "ctx_len", "n_ctx"):
        return "64"
    if plain in ("eps", "epsilon"):
        return "1e-6"
    if pieces & {"offset", "start", "position"}:
        return "0"
    if plain in ("temperature", "temp"):
        return "1.0"
    if plain in ("batch", "batch_size", "bsz", "b"):
        return "batch"
    if plain in ("n_dirs", "num_directions", "directions", "dirs"):
        return "dirs"
    if plain in ("src_len", "source_len", "t_enc", "n_keys"):
        return "T_enc"
    if plain in ("tgt_len", "trg_len", "target_len", "t_dec", "n_queries"):
        return "T_dec"
    if plain in ("seq_len", "length", "n_steps", "steps", "sequence_length"):
        return "T"
    if plain in ("layer", "layer_idx", "layer_id", "layer_number"):
        return "1"
    return size_of(name)[0]
