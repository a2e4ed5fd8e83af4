"""Every attention class of transformers, each in a small wrapper that makes what it asks for.

A wrapper builds the class from a small configuration, makes masks, positions and the like
inside, and has the plain signature (content, mask). What a class asks for is read from its
signature; the first form that runs at all is the one that is checked.
"""

import hashlib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_code.kinds import ways
from real_code.parts import PART, seen_in
from real_code.reading import Said
from real_code.subject import Skip, Subject
from real_code.turning import forms as positions
from real_code.wrapper import CONTENT, KEYS, MASK, MEMORY, OF_MEMORY, VALUES, Form, wrapped

__all__ = ["families", "subjects", "texts", "written"]

_D_MODEL = (
    "embed_dim",
    "hidden_size",
    "dim",
    "d_model",
    "hidden_dim",
    "model_dim",
    "query_dim",
)
_N_HEADS = (
    *("num_heads", "num_attention_heads", "n_heads", "heads", "n_head", "num_attn_heads"),
)
_GIVEN = {
    **{"layer_idx": "0", "layer_id": "0", "layer_number": "0", "layer": "0"},
    **{"dropout": "0.0", "attention_dropout": "0.0", "dropout_rate": "0.0"},
    **{"head_dim": "d_head", "kv_dim": "d_model"},
    **{"num_key_value_heads": "kv_heads", "bias": "True", "downsample_rate": "1"},
    **{"is_causal": "False", "block_index": "0", "attention_type": "'global'"},
    **{"block_id": "0", "resolution": "3", "attention_ratio": "2", "dilation": "1"},
    **{"hidden_sizes": "d_model", "key_dim": "d_head"},
    # Keys are not made fewer.
    **{"sequence_reduction_ratio": "1", "sequences_reduction_ratio": "1"},
    **{"spatial_reduction_ratio": "1", "qkv_bias": "True"},
    **{"nx": "d_model", "n_positions": "64", "cin": "d_model", "c_hidden": "d_head"},
    **{"c_q": "d_model", "c_k": "d_model", "c_v": "d_model", "no_heads": "heads"},
}
# What a constructor is given that does without no default.
_ASKED = {
    # Convolutions that see one position.
    **{"kernel_size": "1", "padding_q": "0", "padding_kv": "0", "stride_q": "1"},
    **{"stride_kv": "1", "qkv_projection_method": "'dw_bn'", "with_cls_token": "False"},
    **{
        "attention_drop_rate": "0.0",
        "drop_rate": "0.0",
        "stage_idx": "0",
        "head_width": "d_head",
    },
    **dict.fromkeys(("qk_channels", "v_channels", "q_dim"), "d_model"),
    **dict.fromkeys(
        ("embedding_dim", "input_dim", "hidden_size_output", "kv_in_dim", "dim_out"), "d_model"
    ),
}


# Reasons that an attempt can prove, as what cannot be stated cannot.
_TRIED = re.compile("compiled package|whole picture|pairs of pictures")
_MADE = re.compile(r"(\w+Config)\(\)(?=, d_model)")


def families() -> list[str]:
    """Names of the modules that hold models."""
    import transformers.models  # noqa: PLC0415 - slow

    found = []
    for folder in pkgutil.iter_modules(transformers.models.__path__):
        name = f"transformers.models.{folder.name}"
        if not folder.ispkg:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        found += [
            f"{name}.{m.name}"
            for m in pkgutil.iter_modules(spec.submodule_search_locations)
            if m.name.startswith("modeling_")
        ]
    return sorted(found)


def texts(module: str) -> list[tuple[str, str]]:
    """Every attention class of a module and a digest of its text, its family's name aside."""
    import torch  # noqa: PLC0415

    loaded = importlib.import_module(module)
    found = []
    for name, each in vars(loaded).items():
        is_own = isinstance(each, type) and each.__module__ == module
        if not (is_own and issubclass(each, torch.nn.Module) and "Attention" in name):
            continue
        text = inspect.getsource(each)
        family = re.match(
            r"([A-Z]\w*?)(Text|Vision|Audio|Self|Cross|Encoder|Decoder|Multi)?"
            r"\w*Attention",
            name,
        )
        plain = text.replace(family.group(1), "X") if family else text
        plain = re.sub(r"\"\"\".*?\"\"\"|#[^\n]*", "", plain, flags=re.S)
        plain = re.sub(r"\s+", " ", plain)
        found.append((name, hashlib.sha256(plain.encode()).hexdigest()[:12]))
    return found


def written(module: str) -> list[str]:
    """Attention classes in the text of a module that cannot be imported."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return []
    text = Path(spec.origin).read_text(encoding="utf-8")
    return re.findall(r"^class (\w*Attention\w*)", text, re.MULTILINE)


def subjects(module: str, name: str) -> Iterator[list[Subject] | Skip]:
    """The forms of one class to try, self-attention and cross-attention apart."""
    family = module.split(".")[2]
    label = f"transformers/{family}.{name}"
    loaded = importlib.import_module(module)
    said = Said(loaded, getattr(loaded, name))
    of_a_kind = _of_a_kind(said, label, family)
    if of_a_kind:
        yield from of_a_kind
        return
    calls = seen_in(loaded, said.kind)
    if calls:
        yield Skip(label, "transformers", family, PART, calls)
        return
    why = ""
    found = False
    for cross in (False, True):
        tried = []
        try:
            for form in _forms(said, cross):
                try:
                    contract, source = wrapped(form)
                except LookupError as error:  # another form may give it
                    why = why or str(error)
                    continue
                what = label + (" (cross)" if cross else "")
                doubt = said.unstated
                of = (what, "transformers", family, source, "Wrapped", contract, "", doubt)
                tried.append(Subject(*of))
        except LookupError as error:
            why = why or str(error)
        if tried:
            found = True
            yield tried
    if not found:
        yield Skip(label, "transformers", family, why or "no form of call is known")


def _of_a_kind(said: Said, label: str, family: str) -> list[list[Subject] | Skip]:
    """The ways to ask a class that asks for more than masks and positions."""
    try:
        found = ways(said, _configs(said.loaded, said.kind))
    except LookupError as error:
        return [Skip(label, "transformers", family, str(error))]
    return [
        [
            Subject(
                f"{label} ({way.form})",
                "transformers",
                family,
                way.source,
                "Wrapped",
                way.contract,
                certain=way.certain,
            )
        ]
        for way in found
    ]


def _forms(said: Said, cross: bool) -> Iterator[Form]:
    parameters = list(inspect.signature(said.kind.forward).parameters.values())[1:]
    names = [p.name for p in parameters]
    beside = (*MEMORY, *KEYS, *VALUES)
    first = next((n for n in names if n not in beside), names[0] if names else "")
    if first not in CONTENT:
        if said.unstated:
            raise LookupError(said.unstated)
        raise LookupError(f"its first argument is `{first or '*args'}`")
    memory = next((p for p in parameters if p.name in MEMORY), None)
    three = any(n in KEYS for n in names)
    if cross and not (memory or three):
        return
    if cross and memory is not None and said.ignores(memory.name):
        return
    if not cross and (three or (memory is not None and memory.default is memory.empty)):
        return
    if said.unstated and not _TRIED.search(said.unstated):
        raise LookupError(said.unstated)
    for config in _configs(said.loaded, said.kind):
        build, imports = _build(said.kind, config, cross)
        for turned in positions(said.loaded, names, said.code, cross=cross):
            for masked in _maskings(said, names, cross):
                yield Form(said, build, imports, cross, turned, masked)
    yield from _more(said, names, cross)


def _more(said: Said, names: list[str], cross: bool) -> Iterator[Form]:
    """Rarer forms: everything given, keys with as many heads as queries, other layouts."""
    masks = _maskings(said, names, cross)
    if any(masks):
        kind = masks[0].split()[0]
        tail = " memory" if "memory" in masks[0] else ""
        rare = [f"{kind} flat", f"{kind} row", f"{kind} flat row"]
        rare += ["keys"] if kind == "boolean" else []
        masks = [masks[0], *(m + tail for m in rare), ""]
    for config in _configs(said.loaded, said.kind):
        build, imports = _build(said.kind, config, cross, more=True)
        fused = [x.replace("more=True)", "more=True, form='sdpa')") for x in build]
        whole = [_MADE.sub(r"made(\1, d_model, heads, kv_heads, d_head)", x) for x in build]
        for lines in (build, [_even(x) for x in build], fused, whole):
            turnings = positions(said.loaded, names, said.code, cross=cross, more=True)
            for turned in turnings:
                for masked in masks:
                    yield Form(said, lines, imports, cross, turned, masked, said.laid, True)
                if "cu_seqlens" in names:
                    yield Form(said, lines, imports, cross, turned, "", "one", True)
                if cross and not said.laid:
                    for masked in masks:
                        yield Form(said, lines, imports, False, turned, masked, "alike", True)


def _even(line: str) -> str:
    """A line that builds a class with as many heads of keys as of queries."""
    return re.sub(r"\bkv_heads\b(?!=)", "heads", line)


def _maskings(said: Said, names: list[str], cross: bool) -> list[str]:
    if said.time_first or "cu_seqlens" in names:
        return [""]  # masks have another layout there
    if said.mask_is_idle:
        return [""]
    if "attention_inputs" in names:
        return ["keys", ""]
    form = "boolean" if said.boolean_masks else "additive"
    if cross and any(n in OF_MEMORY for n in names):
        return [f"{form} memory", ""]
    return [form, ""] if any(n in MASK for n in names) else [""]


def _build(
    kind: Any, config: tuple[str, str] | None, cross: bool, *, more: bool = False
) -> tuple[list[str], str]:
    """Lines that build the class, and its imports."""
    parameters = list(inspect.signature(_maker(kind)).parameters.values())[1:]
    names = [p.name for p in parameters]
    given = []
    for p in parameters:
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        values = {
            **_GIVEN,
            **(_ASKED if more or p.default is p.empty else {}),
            **dict.fromkeys(("is_cross_attention", "encoder_decoder_attention"), str(cross)),
            "has_relative_attention_bias": str(not cross),
            **dict.fromkeys(_N_HEADS, "heads"),
            **dict.fromkeys(_D_MODEL, "d_model"),
        }
        if p.default is p.empty:  # a window of one row, or none
            values["window_size"] = "(1, 64)" if "num_heads" in names else "0"
            if "num_attention_heads" in names:  # of a square
                values["window_size"] = "8"
        table = re.search(rf'\b{p.name}\["', inspect.getsource(kind.__init__))
        if more and table:  # of sizes
            sizes = "{'num_attention_heads': heads, 'attention_dropout_rate': 0.0}"
            given.append(f"{p.name}={sizes}")
        elif "config" in p.name:
            given.append(f"{p.name}=config")
        elif p.name in values:
            given.append(f"{p.name}={values[p.name]}")
        elif p.default is p.empty:
            raise LookupError(f"its constructor asks for `{p.name}`")
    if any("config" in g for g in given):
        if config is None:
            raise LookupError("its configuration class is not found")
        tail = ", more=True" if more else ""
        first = (
            f"        config = shrink({config[1]}(), d_model, heads, kv_heads, d_head{tail})"
        )
        imports = f"from {config[0]} import {config[1]}"
    else:
        first, imports = "", ""
    line = f"        self.attention = {kind.__name__}({', '.join(given)})"
    return [x for x in (first, line) if x], imports


def _maker(kind: Any) -> Any:
    """The constructor of a class, or the one that it hands everything to."""
    for each in kind.__mro__:
        made = vars(each).get("__init__")
        if inspect.isfunction(made) and not {"args", "kwargs"} <= set(
            made.__code__.co_varnames
        ):
            return made
    return kind.__init__


def _configs(loaded: Any, kind: Any) -> list[tuple[str, str] | None]:
    """Configuration classes that may be meant: the annotated one, the model's, all in sight."""
    found: list[Any] = []
    for p in inspect.signature(_maker(kind)).parameters.values():
        if "config" in p.name and p.annotation is not p.empty:
            text = str(getattr(p.annotation, "__name__", p.annotation))
            found += [getattr(loaded, name, None) for name in re.findall(r"\w*Config\b", text)]
    for each in vars(loaded).values():
        if isinstance(each, type) and each.__module__ == loaded.__name__:
            found.append(getattr(each, "config_class", None))
    found += [c for n, c in vars(loaded).items() if n.endswith("Config")]
    # A model of several parts names the whole alone: its parts are defined beside it.
    for module in {c.__module__ for c in found if isinstance(c, type)}:
        beside = vars(importlib.import_module(module))
        found += [c for n, c in beside.items() if n.endswith("Config")]
    names = {
        (c.__module__, c.__name__): None
        for c in found
        if isinstance(c, type) and c.__name__ not in ("PreTrainedConfig", "AutoConfig")
    }
    # Parts first: a model of several has no sizes of its own.
    return [*list(names)[:7], *_parts(found)] or [None]


def _parts(kinds: list[Any]) -> list[tuple[str, str]]:
    """Configurations of parts that another family defines: a model of several names them."""
    found: dict[tuple[str, str], None] = {}
    for kind in kinds:
        for each in getattr(kind, "sub_configs_defaults", None) or {}:
            part = type(getattr(kind(), each, None))
            if part.__module__ != kind.__module__ and hasattr(part, "to_dict"):
                found[part.__module__, part.__name__] = None
    return list(found)
