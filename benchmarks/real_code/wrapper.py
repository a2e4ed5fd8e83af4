"""The text of a wrapper: the class built small, what it asks for made inside."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from real_code.reading import Said
from real_code.turning import FORMS, POSITIONS, own_rotary

__all__ = ["CONTENT", "KEYS", "MASK", "MEMORY", "OF_MEMORY", "VALUES", "Form", "wrapped"]

CONTENT = (
    *("hidden_states", "hidden_state", "x", "query", "queries", "query_states", "input"),
    *("inputs", "embeddings", "tensor", "features", "from_tensor", "hidden_q", "q_x", "q"),
    *("query_tensor", "input_tensor", "output", "hidden", "descriptors", "latents"),
    "word_hidden_states",
)
MEMORY = (
    *("key_value_states", "encoder_hidden_states", "kv", "context", "media", "memory"),
    *("to_tensor", "hidden_kv", "kv_x", "cross_attention_states", "ctx_tensor"),
    *("image_hidden_states", "context_hidden_states"),
)
KEYS = ("key", "keys", "key_states", "k", "key_tensor")
MASK = ("attention_mask", "mask")
OF_MEMORY = (
    "encoder_attention_mask",
    "cross_attention_mask",
    "key_mask",
    "ctx_att_mask",
    "image_attention_mask",
)
VALUES = ("value", "values", "value_states", "v", "value_tensor")
# What is added to a sequence: the same everywhere, so that it says nothing of places.
_ADDED = {
    **dict.fromkeys(
        ("residual", "query_point_embedding", "query_position_embeddings", "query_pos"),
        "torch.full_like(hidden_states, 0.5)",
    ),
    **dict.fromkeys(
        ("key_point_embedding", "key_position_embeddings"), "torch.full_like({memory}, 0.5)"
    ),
}
_ALWAYS = {
    "position_ids": "torch.arange(t)[None].expand(n, t)",
    "output_attentions": "True",
    "cu_seqlens": "torch.tensor([0, t], dtype=torch.int32)",
}
_NEEDED = {
    **{"max_seqlen": "t", "shared_kv_states": "{}", "layer_idx": "0"},
    **{"attention_similarity": "None", "height": "1", "width": "t"},
    **dict.fromkeys((*OF_MEMORY, *MASK), "None"),
    **dict.fromkeys(("cache", "past_key_values", "layer_past", "alibi"), "None"),
    **{"position_bias": "None", "entity_hidden_states": "None"},
}

# What is given only where it does not run without: nothing of it tells places apart but
# what is taken from the content.
_MORE = {
    "bbox_pos_emb": "torch.full((t, t, n, self.d_head), 0.1)",
    "hidden_states_scaling_factor": "torch.ones(1)",
    "layout_inputs": "hidden_states[..., : self.d_model // 2]",
    "alibi": "torch.zeros(n * self.heads, 1, t)",
    **dict.fromkeys(("rel_pos", "rel_2d_pos"), "torch.zeros(n, 1, t, t)"),
    **dict.fromkeys(
        (
            *("query_position_embedding", "residual", "layer_input"),
            "original_hidden_states",
        ),
        "torch.full_like(hidden_states, 0.5)",
    ),
    **dict.fromkeys(
        (
            "spatial_position_embeddings",
            "key_value_position_embeddings",
        ),
        "torch.full_like({memory}, 0.5)",
    ),
    # What is put beside the content has no effect where it is the same for all keys.
    **dict.fromkeys(("query_sine_embed", "object_queries"), "hidden_states"),
    "encoder_position_embeddings": "{memory}",
    "attention_dists": "self.attention.max_pos_emb + torch.arange(self.attention.context_size)"
    "[:, None] - torch.arange(self.attention.context_size)",
    "full_text_row_masked_out_mask": "None",
    "cross_attention_gate": "torch.ones(n, t)",
    "position_bias": "torch.zeros(n, self.heads, 1, 1)",
    "token_indices": "torch.arange(t)[None].expand(n, t)",
    **dict.fromkeys(("key_hidden_states", "value_hidden_states"), "hidden_states"),
    "relative_distance": "torch.arange(t)[:, None] - torch.arange(t)",
    "rel_embeddings": "self.relative",
}
# The result of a layer that returns results of its parts, each with what belongs to it.
_NESTED = "        found = [f[0] if isinstance(f, tuple | list) and f else f for f in found]\n"
# Of results with names the first: what the others are, their names tell and not their places.
_NAMED = "        found = next(iter(found.values())) if type(found) is dict else found\n"
_FIRST = "        found = (found[0]{}, *found[1:])\n"
_WINDOW_TABLES = [
    "        self.tables = [",
    "            (m, m.relative_position_index.clone())",
    "            for m in self.attention.modules()",
    "            if hasattr(m, 'relative_position_index')",
    "        ]",
    # The height is 0 all over a row, so that its weights would have no effect.
    "        for m in self.attention.modules():",
    "            if hasattr(m, 'relative_coords_table'):",
    "                m.relative_coords_table[..., 0] = 0.5",
]


def _each(text: str) -> Any:
    """Lines that lay every sequence otherwise."""
    return lambda inputs: [
        f"        {name} = {name}{text}" for name in inputs if name != "mask"
    ]


# How sequences lie -> (lines that lay them so, lines that lay the result back)
_LAID = {
    "grid": (_each("[:, None]"), _FIRST.format("[:, 0]")),
    "channels": (_each(".transpose(1, 2)"), _FIRST.format(".transpose(1, 2)")),
    "map": (
        _each(".transpose(1, 2)[:, :, None]"),
        _FIRST.format("[:, :, 0].transpose(1, 2)"),
    ),
    # One query of its own: a result for the whole sequence.
    "pooled": (
        lambda inputs: [],
        "        found = (found[0] if found[0].ndim == 2 else found[0][:, 0], *found[1:])\n",
    ),
    # Packed sequences have a batch axis of one example before them.
    "one": (_each("[None]"), _FIRST.format("[0]")),
    # Keys and values are as many as queries.
    "alike": (lambda inputs: [], ""),
    # Places of a window of one row: those of a shorter row are a part of the table.
    "window": (
        lambda inputs: [
            "        for module, table in self.tables:",
            "            module.window_size, module.window_area = (1, t), t",
            "            part = table.view(int(table.numel() ** 0.5), -1)[:t, :t]",
            "            part = part.reshape(-1) if table.ndim == 1 else part.contiguous()",
            "            module.relative_position_index = part",
        ],
        "",
    ),
}

_TEXT = '''"""{name} of {module}, small."""

import torch
from torch import nn

from real_code.tiny import made, shrink
from {module} import {name}
{imports}

LOWEST = torch.finfo(torch.float32).min


class Wrapped(nn.Module):
    def __init__(self, d_model, heads, kv_heads, d_head):
        super().__init__()
{build}

    def forward(self, {arguments}):
        {axes} = hidden_states.shape[:2]
{made}
        found = self.attention({given})
{named}        found = found if isinstance(found, tuple | list) else (found,)
{back}        return tuple(f for f in found if torch.is_tensor(f)){tail}
'''


@dataclass(frozen=True)
class Form:
    """One way to build and call a class.

    ``build`` and ``imports`` are lines, ``turned`` names a form of positions or is empty,
    ``masked`` is "additive" or "boolean", with " memory" behind it, or empty; with " flat" it
    has no axis of heads, with " row" one row for all queries, "keys" is the mask itself.
    ``laid`` is how sequences lie ("" as (batch, length, features), "grid" as a map of one
    row, "channels" with features first, "map" as a map with features first); with ``more``
    everything that is known is given, were it optional or not, and sizes are those of `shrink`
    with ``more``.
    """

    said: Said
    build: Sequence[str]
    imports: str
    cross: bool
    turned: str
    masked: str
    laid: str = ""
    more: bool = False

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Parameters of the call."""
        every = list(inspect.signature(self.said.kind.forward).parameters.values())[1:]
        return [p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    @property
    def packed(self) -> bool:
        """Whether sequences come one behind the other without a batch axis."""
        found = next((p for p in self.parameters if p.name == "cu_seqlens"), None)
        left_out = self.more and self.laid != "one" and found is not None
        return found is not None and not (left_out and found.default is None)

    @property
    def order(self) -> str:
        """Axes of a sequence, its length left open."""
        if self.packed:
            return "{} d_model"
        return "{} batch d_model" if self.said.time_first else "batch {} d_model"


def wrapped(form: Form) -> tuple[dict[str, Any], str]:
    """The contract of a form and the text of its wrapper.

    Raises
    ------
    LookupError
        If the call asks for something that is not known.
    """
    kind, loaded = form.said.kind, form.said.loaded
    rows = "T_dec" if form.cross else "T"
    inputs = {"hidden_states": form.order.format(rows)}
    given = [g for p in form.parameters if (g := _argument(form, p, inputs))]
    given += _passed_on(form)
    lines, imports, made = list(form.build), [form.imports], list[str]()
    if form.more:
        lines.append("        self.heads, self.d_head, self.d_model = heads, d_head, d_model")
    if form.masked:
        inputs["mask"] = f"batch {'T_enc' if form.cross else 'T'}"
        made.append(_mask(form))
    if form.turned:
        before, inside = FORMS[form.turned]
        own = own_rotary(loaded)
        if own and form.turned.startswith("own"):
            imports.append(f"from {loaded.__name__} import {own}")
        lines.append(before.format(rotary=own))
        made.append(inside)
    if form.laid:
        made += _LAID[form.laid][0](inputs)
    if form.laid == "window":
        lines += _WINDOW_TABLES
    if any("self.relative" in g for g in given):  # a table of distances is learned elsewhere
        lines.append("        self.relative = torch.randn(1024, d_model)")
    if any("self.structure" in g for g in given):
        structure = _structure(loaded)
        imports.append(f"from {loaded.__name__} import {structure}")
        lines.append(f"        self.structure = {structure}(config)")
    source = _TEXT.format(
        name=kind.__name__,
        module=loaded.__name__,
        imports="\n".join(i for i in imports if i),
        build="\n".join(lines),
        arguments=", ".join(inputs),
        axes="t, n" if form.packed or form.said.time_first else "n, t",
        made="\n".join(made) or "        # nothing else to make",
        given=", ".join(given),
        named=_NAMED if form.more else "",
        back=_LAID[form.laid][1] if form.laid else _NESTED if form.more else "",
        tail="[:2]",
    )
    return _contract(form, inputs, rows), source


def _argument(form: Form, p: inspect.Parameter, inputs: dict[str, str]) -> str:
    """What is given for a parameter; '' to leave it out."""
    names = {
        **dict.fromkeys(CONTENT, "hidden_states"),
        **(dict.fromkeys(MEMORY, "memory") if form.cross else {}),
        **dict.fromkeys(KEYS, "key"),
        **dict.fromkeys(VALUES, "value"),
    }
    # One that takes the place of the first, and a rarity of packed sequences.
    second = form.more and any(g in CONTENT for g in _earlier(form, p))
    left_out = second and p.name in CONTENT and p.default is not p.empty
    if left_out or (p.name == "cu_seqlens" and not form.packed):
        return ""
    if p.name in names or (form.laid == "alike" and p.name in MEMORY):
        name = names[p.name] if form.laid != "alike" else "hidden_states"
        inputs.setdefault(name, form.order.format("T_enc"))
        return f"{p.name}={name}"
    own = _own(form, p.name)
    if own:
        return f"{p.name}={own}"
    masks = OF_MEMORY if "memory" in form.masked else MASK
    masked = form.masked and p.name in masks
    turned = p.name == "position_embeddings" or (form.more and p.name in POSITIONS)
    if masked or turned:
        given = "bias" if masked else "positions" if form.turned else ""
        return f"{p.name}={given}" if given else ""
    always = {**_ALWAYS, **_ADDED, **(_MORE if form.more else {})}
    if p.name in always:
        memory = next((n for n in ("key", "memory") if n in inputs), "hidden_states")
        return f"{p.name}={always[p.name].replace('{memory}', memory)}"
    needed = p.default is p.empty and p.name not in MEMORY
    if needed and p.name not in _NEEDED:
        raise LookupError(f"its call asks for `{p.name}`")
    return f"{p.name}={_NEEDED[p.name]}" if needed else ""


def _own(form: Form, name: str) -> str:
    """What a rarer parameter is given for its name's sake, or ''."""
    masked = "mask" if form.masked else "None"
    if name == "attention_inputs" and _structure(form.said.loaded):
        segments = "(torch.arange(t) // 2 % 2)[None].expand(n, t)"
        return f"self.structure.init_attention_inputs(hidden_states, {masked}, {segments})"
    if name == "conv_mask":
        return masked
    return "place" if name == "position_ids" and form.turned == "axial" else ""


def _passed_on(form: Form) -> list[str]:
    """What is given by name beside the parameters, for the parts that it is handed on to."""
    known = {**_ALWAYS, **_NEEDED} if form.more else {}
    taken = {p.name for p in form.parameters}
    return [f"{n}={known[n]}" for n in form.said.passed_on if n in known and n not in taken]


def _structure(loaded: Any) -> str:
    """The class of a module that makes the inputs of attention for its model, or ''."""
    return next((n for n, c in vars(loaded).items() if hasattr(c, "init_attention_inputs")), "")


def _earlier(form: Form, p: inspect.Parameter) -> list[str]:
    names = [each.name for each in form.parameters]
    return names[: names.index(p.name)]


def _mask(form: Form) -> str:
    if form.masked.startswith("keys"):
        return "        bias = mask"
    seen = "mask[:, None, None, :]"
    if " row" in form.masked:
        pass
    elif form.said.causal_by_mask and not form.cross:
        seen += " & torch.ones(t, t, dtype=torch.bool).tril()"
    else:
        seen += f".expand(n, 1, t, {'mask.shape[1]' if form.cross else 't'})"
    if "additive" in form.masked:
        seen = f"torch.where({seen}, 0.0, LOWEST)"
    return (
        f"        bias = ({seen})[:, 0]" if " flat" in form.masked else f"        bias = {seen}"
    )


def _contract(form: Form, inputs: dict[str, str], rows: str) -> dict[str, Any]:
    said = form.said
    axes = "batch d_model" if form.laid == "pooled" else form.order.format(rows)
    contract: dict[str, Any] = {
        "target": "wrapped.py:Wrapped",
        "init": {n: n for n in ("d_model", "heads", "kv_heads", "d_head")},
        "inputs": inputs,
        "returns": [{"name": "context", "axes": axes}],
        "extra keys": said.extra_keys,
    }
    if not any(re.search(r"\bkv_heads\b(?!=)", line) for line in form.build):
        contract["init"]["kv_heads"] = "heads"  # built with as many
    if said.sizes:
        contract["sizes"] = said.sizes
    if form.masked:
        contract["kinds"] = {"mask": "keep"}
    told_not = any("is_causal=False" in line for line in form.build)
    by_mask = said.causal_by_mask and form.masked and "keys" not in form.masked
    if not form.cross and (by_mask or (said.causal_inside and not told_not)):
        contract["causal"] = "top_left"
    unclear = said.turns_somewhere or said.normed_after_turning
    if form.turned.startswith("relative") or (form.turned and unclear):
        contract["positions"] = "recurrent"  # order may matter, or not in this layer
    elif form.turned and form.more:
        if not form.cross:
            contract["positions"] = "recurrent"  # which part turns is not known
    elif form.turned:
        contract["positions"] = "absolute" if form.turned == "added" else "rotary"
    elif not form.cross and said.knows_order:
        contract["positions"] = "recurrent"  # order may matter; nothing more is known
    if said.scaled and not form.more and contract.get("positions") != "recurrent":
        contract["score"] = "scaled_dot"
    return contract
