"""What the text of an attention class says of its pattern, its layout and its masks."""

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Said"]

_ATTENDING = re.compile("softmax|attention_interface|scaled_dot", re.IGNORECASE)
_CAUSAL_INSIDE = re.compile(r"self\.bias\[|gated_delta|recurrent_")
_LOCAL = re.compile(
    r"chunk_size(?!_feed_forward)|context_left|max_past_horizon|block_size|num_neighbors|"
    r"block_len|radius"
)
_BOOLEAN = re.compile(
    r"attention_mask\.(bool|to\(torch\.bool)|~\(?attention_mask|attention_mask == 0|"
    r"attention_mask[^\n]* == torch\.tensor\(False|~\(?mask|mask == 0|mask\.logical_not|"
    r"attention_mask[\w.()]*\.eq\(0\)|pad\(attention_mask[^\n]*value=False|"
    r"attention_mask \(`torch\.BoolTensor`\)"
)
# What is not zero is hidden, as numbers that are added have it.
_HIDES = re.compile(r"masked_fill_?\(\s*attention_mask\.to\(torch\.bool\)")
_IDLE_MASK = re.compile(r"attention_mask:[^\n]*# *(not used|unused)", re.IGNORECASE)
_ATTENDS = re.compile(r"softmax|matmul|bmm|einsum| @ |attn|attention|rule\(|mha", re.IGNORECASE)
_TIME_FIRST = re.compile(
    r"Time\W*(\(SeqLen\) )?x Batch|permute\(1, 0, 2\)|nn\.MultiheadAttention\([\w., ]+ // 64\)"
)
# What it turns at once came with time first, whatever its text says.
_TURNED_AT_ONCE = re.compile(r"hidden_states = \(?\s*hidden_states\.permute\(1, 0, 2\)")
_BATCH_FIRST = re.compile(r"Input shape: Batch x Time")
_GRID = re.compile(
    r"(batch_size|batch), height, width, \w+ = hidden_states?|point_batch_size|"
    r"(B|batch\w*), (H|height), (W|width), _ = "
)
_BENT = re.compile(r"softcap|logit_cap|tanh\(|scale_factor|sqk_scale|query_pre_attn|mscale")
_NOWHERE = re.compile(
    r"if self\.(sliding_window is not None|(config\.)?(use|is)_(\w+_)?rope)|no_?rope|NoPE"
)
_NORMED_LATER = re.compile(r"apply_\w*rotary[\s\S]*?self\.(q\w*norm\w*)\(")
_EXTRA_KEYS = re.compile(r"sink|s_aux|bias_k|add_zero")
_SCALED = re.compile(r"scaling = self\.head_dim ?\*\* ?-0\.5|attention_head_size ?\*\* ?-0\.5")
_ORDERED = re.compile(
    r"relative|rel_pos|position_bias|alibi|distance_embedding|rotary|rope|conv\w* ?=|"
    r"nn\.Conv|token_shift|time_shift|local_|window|lstm|pos_emb|position_embedding|"
    r"attention_offsets"
)


@dataclass(frozen=True)
class Said:
    """What a class of a module says of itself."""

    loaded: Any
    kind: Any

    @cached_property
    def code(self) -> str:
        """The text of the class and of the classes of its module that it is made of."""
        return _whole(self.loaded, self.kind)

    @property
    def unstated(self) -> str:
        """Why no contract can state what it does, or ''."""
        why = ""
        if "FlashAttention" in self.kind.__name__:
            why = "it asks for the compiled package flash_attn"
        parts = [f for n, f in vars(self.kind).items() if n != "__init__"]
        text = "\n".join(inspect.getsource(f) for f in parts if inspect.isfunction(f))
        if "forward" in vars(self.kind) and not _ATTENDS.search(text):
            why = why or "it is no attention, but a part beside one"
        if "natten" in self.code:
            why = why or "it asks for the compiled package natten"
        local = "it looks at a neighbourhood that no contract can state"
        # A triangle of that size is no block.
        code = self.code if "ones((block_size, block_size)" not in self.code else ""
        return why or (local if _LOCAL.search(code) else "")

    @property
    def causal_by_mask(self) -> bool:
        """Whether the model hands it a causal mask."""
        return "is_causal = True" in self.code

    @property
    def causal_inside(self) -> bool:
        """Whether it draws the causal pattern itself."""
        return bool(_CAUSAL_INSIDE.search(self.code))

    @property
    def boolean_masks(self) -> bool:
        """Whether masks are booleans instead of numbers that are added."""
        given = _HIDES.sub("", self.code)
        return bool(_BOOLEAN.search(given))

    def ignores(self, name: str) -> bool:
        """Whether a self-attention takes an argument and never reads it, as its kin do."""
        body = inspect.getsource(self.kind.forward).split("->", 1)[-1]
        read = re.sub(r"\"\"\".*?\"\"\"|#[^\n]*", "", body, flags=re.S)
        return "SelfAttention" in self.kind.__name__ and not re.search(rf"\b{name}\b", read)

    @property
    def mask_is_idle(self) -> bool:
        """Whether its signature says that a mask is taken and not used."""
        return bool(_IDLE_MASK.search(inspect.getsource(self.kind.forward)))

    @property
    def time_first(self) -> bool:
        """Whether sequences are (time, batch, features)."""
        if _TURNED_AT_ONCE.search(self.code):
            return True
        return bool(_TIME_FIRST.search(self.code)) and not _BATCH_FIRST.search(self.code)

    @property
    def laid(self) -> str:
        """How it wants sequences, where not as (batch, length, features)."""
        if _GRID.search(self.code):
            return "grid"
        if "PoolingHead" in self.kind.__name__:
            return "pooled"
        if "relative_position_index" in self.code and "window_size" in self.code:
            return "window"
        if "RelativePositionBias(" in self.code and "window_size" in self.built_with:
            return "window"
        if "nn.Conv1d(" in self.code or "matmul_1x1" in self.code:
            return "channels"
        return "map" if "qkv_proj = MobileViT" in self.code else ""

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes that it has whatever it is given: heads of 64 features, a square of places."""
        if "hidden_size // 64" in self.code:
            return {"heads": 2, "d_head": 64}
        return {"T": 9} if "resolution" in self.built_with else {}

    @property
    def built_with(self) -> tuple[str, ...]:
        """Parameters of its constructor."""
        return tuple(inspect.signature(self.kind.__init__).parameters)

    @property
    def passed_on(self) -> tuple[str, ...]:
        """What it hands on to its parts and reads out of what it takes by name."""
        code = inspect.getsource(self.kind.forward)
        found = re.findall(r"\bkwargs\[\"(\w+)\"\]", code)
        # The function that it calls asks for a mask which it does not take itself.
        if "attention_interface" in code and "attention_mask" not in code:
            found.append("attention_mask")
        return tuple(dict.fromkeys(found))

    @property
    def extra_keys(self) -> bool:
        """Whether it adds keys of its own, so that given ones share less than one."""
        return bool(_EXTRA_KEYS.search(self.code))

    @property
    def knows_order(self) -> bool:
        """Whether the order of positions may matter."""
        return bool(_ORDERED.search(self.code))

    @property
    def normed_after_turning(self) -> bool:
        """Whether a factor a feature comes after the rotation, so that places count."""
        later = _NORMED_LATER.search(inspect.getsource(self.kind.forward))
        if later is None:
            return False
        built = re.search(rf"self\.{later.group(1)} = ([\w.]+)\(", self.code)
        kind = getattr(self.loaded, built.group(1), None) if built else None
        return kind is None or "Parameter(" in inspect.getsource(kind)

    @property
    def turns_somewhere(self) -> bool:
        """Whether only some layers are told positions."""
        return bool(_NOWHERE.search(self.code))

    @property
    def scaled(self) -> bool:
        """Whether scores are plain products over the root of a head's size."""
        return bool(_SCALED.search(self.code)) and not _BENT.search(self.code)


def _whole(loaded: Any, kind: Any) -> str:
    """The text of a class and of the classes of its module that it is made of."""
    todo, text = [kind], {}
    while todo:
        each = todo.pop()
        if each in text:
            continue
        text[each] = inspect.getsource(each)
        for name in re.findall(r"\b(\w*(?:Attention|Attn)\w*)\(", text[each]):
            found = getattr(loaded, name, None)
            # A tuple with names has no text of its own.
            is_named = hasattr(found, "_fields")
            if isinstance(found, type) and found.__module__ == loaded.__name__ and not is_named:
                todo.append(found)
    whole = "\n".join(text.values())
    if _ATTENDING.search(whole):
        return whole
    # A class is chosen by name before it is called.
    named = re.findall(r"\b([A-Z]\w*Attention\w*)\b", inspect.getsource(kind))
    chosen = [vars(loaded).get(n) for n in dict.fromkeys(named) if n != kind.__name__]
    chosen = [c for c in chosen if isinstance(c, type) and c.__module__ == loaded.__name__]
    beside = "\n".join(inspect.getsource(c) for c in chosen)
    if _ATTENDING.search(beside):
        return "\n".join([whole, beside])
    # It hands its work to what a table finds: any attention of the module.
    found = [
        inspect.getsource(c)
        for n, c in vars(loaded).items()
        if isinstance(c, type)
        and c.__module__ == loaded.__name__
        and "Attention" in n
        # A tuple with names has no text of its own.
        and not hasattr(c, "_fields")
    ]
    return "\n".join([whole, *found])
