"""The text of a wrapper: the class built small, what it asks for made inside."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from real_code.reading import Said
from real_code.turning import FORMS, own_rotary

__all__ = ["CONTENT", "KEYS", "MASK", "MEMORY", "OF_MEMORY", "VALUES", "Form", "wrapped"]

CONTENT = (
    *("hidden_states", "hidden_state", "x", "query", "queries", "query_states", "input"),
    *("inputs", "embeddings", "tensor", "features", "from_tensor", "hidden_q", "q_x", "q"),
    *("query_tensor", "input_tensor", "output", "hidden", "descriptors", "latents"),
)
MEMORY = (
    *("key_value_states", "encoder_hidden_states", "kv", "context", "media", "memory"),
    *("to_tensor", "hidden_kv", "kv_x", "cross_attention_states"),
)
KEYS = ("key", "keys", "key_states", "k", "key_tensor")
MASK = ("attention_mask", "mask")
OF_MEMORY = ("encoder_attention_mask", "cross_attention_mask", "key_mask")
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
    "position_bias": "None",
}

_TEXT = '''"""{name} of {module}, small."""

import torch
from torch import nn

from real_code.tiny import shrink
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
        found = found if isinstance(found, tuple | list) else (found,)
        return tuple(f for f in found if torch.is_tensor(f)){tail}
'''


@dataclass(frozen=True)
class Form:
    """One way to build and call a class.

    ``build`` and ``imports`` are lines, ``turned`` names a form of positions or is empty,
    ``masked`` is "additive" or "boolean", with " memory" behind it, or empty.
    """

    said: Said
    build: Sequence[str]
    imports: str
    cross: bool
    turned: str
    masked: str

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """Parameters of the call."""
        every = list(inspect.signature(self.said.kind.forward).parameters.values())[1:]
        return [p for p in every if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]

    @property
    def packed(self) -> bool:
        """Whether sequences come one behind the other without a batch axis."""
        return any(p.name == "cu_seqlens" for p in self.parameters)

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
    lines, imports, made = list(form.build), [form.imports], list[str]()
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
    source = _TEXT.format(
        name=kind.__name__,
        module=loaded.__name__,
        imports="\n".join(i for i in imports if i),
        build="\n".join(lines),
        arguments=", ".join(inputs),
        axes="t, n" if form.packed or form.said.time_first else "n, t",
        made="\n".join(made) or "        # nothing else to make",
        given=", ".join(given),
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
    if p.name in names:
        name = names[p.name]
        inputs.setdefault(name, form.order.format("T_enc"))
        return f"{p.name}={name}"
    masks = OF_MEMORY if "memory" in form.masked else MASK
    if form.masked and p.name in masks:
        return f"{p.name}=bias"
    if p.name == "position_embeddings":
        return "position_embeddings=positions" if form.turned else ""
    always = {**_ALWAYS, **_ADDED}
    if p.name in always:
        memory = next((n for n in ("key", "memory") if n in inputs), "hidden_states")
        return f"{p.name}={always[p.name].replace('{memory}', memory)}"
    if p.default is not p.empty or p.name in MEMORY:
        return ""
    if p.name not in _NEEDED:
        raise LookupError(f"its call asks for `{p.name}`")
    return f"{p.name}={_NEEDED[p.name]}"


def _mask(form: Form) -> str:
    seen = "mask[:, None, None, :]"
    if form.said.causal_by_mask and not form.cross:
        seen += " & torch.ones(t, t, dtype=torch.bool).tril()"
    else:
        seen += f".expand(n, 1, t, {'mask.shape[1]' if form.cross else 't'})"
    if "additive" in form.masked:
        seen = f"torch.where({seen}, 0.0, LOWEST)"
    return f"        bias = {seen}"


def _contract(form: Form, inputs: dict[str, str], rows: str) -> dict[str, Any]:
    said = form.said
    contract: dict[str, Any] = {
        "target": "wrapped.py:Wrapped",
        "init": {n: n for n in ("d_model", "heads", "kv_heads", "d_head")},
        "inputs": inputs,
        "returns": [{"name": "context", "axes": form.order.format(rows)}],
        "extra keys": said.extra_keys,
    }
    if form.masked:
        contract["kinds"] = {"mask": "keep"}
    by_mask = said.causal_by_mask and form.masked
    if not form.cross and (by_mask or said.causal_inside):
        contract["causal"] = "top_left"
    unclear = said.turns_somewhere or said.normed_after_turning
    if form.turned == "relative" or (form.turned and unclear):
        contract["positions"] = "recurrent"  # order may matter, or not in this layer
    elif form.turned:
        contract["positions"] = "absolute" if form.turned == "added" else "rotary"
    elif not form.cross and said.knows_order:
        contract["positions"] = "recurrent"  # order may matter; nothing more is known
    if said.scaled and contract.get("positions") != "recurrent":
        contract["score"] = "scaled_dot"
    return contract
