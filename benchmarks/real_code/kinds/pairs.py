"""Attention over pairs of residues, and over residues that know their pairs.

A pair holds half of the features of each of its two residues, so that the sequence alone is
given, and what is declared of self-attention must hold: who is hidden is hidden in every pair.
"""

from dataclasses import replace

from real_code.kinds.base import Asked, Way, cross, own

__all__ = ["ways"]

_PAIRS = """
n, t = hidden_states.shape[:2]
one, two = hidden_states.chunk(2, dim=-1)
pairs = torch.cat((one[:, :, None].expand(n, t, t, -1), two[:, None].expand(n, t, t, -1)), -1)
"""
_PLAIN = """
self.attention = NAME(d_model, d_model, d_model, d_head, heads)
"""
_PLAIN_CALL = """
bias = torch.where(mask[:, None, None, :], 0.0, -1e9)
return self.attention(hidden_states, memory, [bias])
"""
_TRIANGLE = """
self.attention = NAME(d_model, d_head, heads, starting=STARTING)
"""
# Each residue's own pair: queries and keys of its row, or of its column.
_TRIANGLE_CALL = """
both = (mask[:, :, None] & mask[:, None]).float()
found = self.attention(pairs, both)
return found.diagonal(dim1=1, dim2=2).transpose(1, 2)
"""
_BLOCK = """
config = CONFIG_KIND(
    sequence_state_dim=d_model,
    pairwise_state_dim=d_model,
    sequence_head_width=d_head,
    pairwise_head_width=d_head,
)
self.attention = NAME(config)
"""
_BLOCK_CALL = """
found, pairs = self.attention(hidden_states, pairs, MASK)
return found, pairs.diagonal(dim1=1, dim2=2).transpose(1, 2)
"""
_FRAMES = """
config = CONFIG_KIND(
    sequence_dim=d_model, pairwise_dim=d_model, ipa_dim=d_head, num_heads_ipa=heads
)
self.attention = NAME(config)
"""
_FRAMES_CALL = """
frames = Rigid.identity((n, t), fmt="quat", requires_grad=False)
return self.attention(hidden_states, pairs, frames, mask.float())
"""
_BIASED = """
config = CONFIG
config.hidden_size, config.head_dim = d_model, d_head
config._attn_implementation = "eager"
self.attention = NAME(config, config)
"""
_BIASED_CALL = """
bias = torch.where(mask[:, None, None, :], 0.0, LOWEST)
return self.attention(hidden_states, bias.expand(-1, 1, hidden_states.shape[1], -1))
"""
_POOLING = """
config = CONFIG
config.pairwise_hidden_size = config.hidden_size = d_model
self.attention = NAME(config)
"""
_POOLING_CALL = """
return self.attention(pairs, mask)
"""


def ways(asked: Asked) -> list[Way]:  # noqa: PLR0911 - one a kind
    """Ways to ask a class that attends to pairs of residues; none for any other."""
    takes = asked.takes
    if takes[:3] == ("q_x", "kv_x", "biases"):
        return [Way.of(asked, "cross", _PLAIN, _PLAIN_CALL, cross())]
    if "no_heads" in asked.built_with and "starting" in asked.built_with:
        return [
            Way.of(
                asked,
                f"{form} node",
                _TRIANGLE.replace("STARTING", str(form == "starting")),
                _PAIRS + _TRIANGLE_CALL,
                own(),
            )
            for form in ("starting", "ending")
        ]
    if takes[:2] == ("sequence_state", "pairwise_state"):
        second = {"name": "pairs", "axes": "batch T d_model"}
        stated = own(returns=[*own()["returns"], second])
        numbers, flags = (_BLOCK_CALL.replace("MASK", m) for m in ("mask.float()", "mask"))
        documented = _with(asked, "mask as documented", "Trunk", (_BLOCK, flags), stated)
        return [
            _with(asked, "residues and pairs", "Trunk", (_BLOCK, numbers), stated),
            replace(documented, certain=True),
        ]
    if takes[:4] == ("s", "z", "r", "mask"):
        return [_with(asked, "frames at rest", "Structure", (_FRAMES, _FRAMES_CALL), own())]
    if takes[:2] == ("hidden_states", "attention_bias"):
        stated = own(
            returns=[*own()["returns"], {"name": "weights", "axes": "batch heads T T"}],
            weights={"output": "weights", "sums_to_one_over": -1},
            score="scaled_dot",
        )
        of = {"config": asked.config()}
        return [Way.of(asked, "bias of padding", _BIASED, _BIASED_CALL, stated, **of)]
    if takes[:2] == ("pair_states", "attention_mask"):
        stated = own(init={"d_model": "d_model", "heads": 1, "d_head": "d_head"})
        of = {"config": asked.config()}
        return [Way.of(asked, "rows of pairs", _POOLING, _PAIRS + _POOLING_CALL, stated, **of)]
    return []


def _with(
    asked: Asked, form: str, part: str, texts: tuple[str, str], stated: dict[str, object]
) -> Way:
    """A way to ask a class that is built from a configuration of one part of its model."""
    module, name = asked.config(part)
    build, call = texts
    build = build.replace("CONFIG_KIND", "kind")
    first = f"from {module} import {name} as kind\n"
    beside = ("Rigid",) if "Rigid" in call else ()
    return Way.of(asked, form, first + build.lstrip("\n"), _PAIRS + call, stated, beside=beside)
