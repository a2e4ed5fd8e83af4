"""Positions that a wrapper makes: rotations and tables, in the forms that are asked for."""

import inspect
import re
from typing import Any

__all__ = ["FORMS", "POSITIONS", "forms", "own_rotary"]

# Parameters that positions are given for.
POSITIONS = (
    *("position_embeddings", "relative_position_embeddings", "freqs_ci", "rotary_pos_emb"),
    "pos_emb",
)

_PAIRS = re.compile(r"\.\.\., (0|1)?::2\]|rotate_every_two|rotate_pair|unflatten\(-1, \(-1, 2")
_AXIAL = re.compile(r"position_ids\.shape\[-1\]")
_DISTANCES = re.compile(r"emb\(position_embeddings\)")
_SHIFTED = re.compile(r"rel(ative)?_shift")

# name -> (line of the constructor, lines that make `positions`)
FORMS = {
    "own": (
        "        self.rotary = {rotary}(config)",
        "        place = torch.arange(t)[None].expand(n, t)\n"
        "        positions = self.rotary(hidden_states, place)",
    ),
    "own typed": (
        "        self.rotary = {rotary}(config)",
        "        place = torch.arange(t)[None].expand(n, t)\n"
        "        kind = sorted(set(self.attention.config.layer_types))[-1]\n"
        "        positions = self.rotary(hidden_states, place, kind)",
    ),
    "own three": (
        "        self.rotary = {rotary}(config)",
        "        place = torch.arange(t).expand(3, n, t)\n"
        "        positions = self.rotary(hidden_states, place)",
    ),
    "batched": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = torch.cat((angle, angle), dim=-1)[None].expand(n, -1, -1)\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "flat": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = torch.cat((angle, angle), dim=-1)\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "own named": (
        "        self.rotary = {rotary}(config)",
        "        place = torch.arange(t)[None].expand(n, t)\n"
        "        tables = [name for name, _ in self.rotary.named_buffers()]\n"
        "        kind = next(x.removesuffix('_inv_freq') for x in tables if '_inv' in x)\n"
        "        positions = self.rotary(hidden_states, place, kind)",
    ),
    "own each": (
        "        self.rotary = {rotary}(config)",
        "        place = torch.arange(t)[None].expand(n, t)\n"
        "        positions = {\n"
        "            kind: self.rotary(hidden_states, place, kind)\n"
        "            for kind in self.rotary.layer_types\n"
        "        }",
    ),
    # A map of one row: its height is 0 all over.
    "axial": (
        "        self.width = self.attention.head_dim // 2",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = torch.cat((0.0 * angle, 0.0 * angle, angle, angle), dim=-1)\n"
        "        positions = (angle.cos().expand(n, -1, -1), angle.sin().expand(n, -1, -1))\n"
        "        place = torch.arange(t)\n"
        "        place = torch.stack((0 * place, place), dim=-1).expand(n, -1, -1)",
    ),
    "distances": (
        "        self.longest = config.max_position_embeddings",
        "        place = torch.arange(self.attention.context_size)\n"
        "        positions = place[:, None] - place + self.longest",
    ),
    "even": (
        "        self.width = d_model",
        "        positions = torch.full_like(hidden_states, 0.5)",
    ),
    "own alone": (
        "        self.rotary = {rotary}(config)",
        "        positions = self.rotary(hidden_states)",
    ),
    "of heads": (
        "        self.width, self.count = d_head, heads",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(self.count)[:, None] * rate\n"
        "        angle = torch.cat((angle, angle), dim=-1)[None]\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "headed": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = torch.cat((angle, angle), dim=-1)[None, None]\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "halves": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = (torch.arange(t)[:, None] * rate)[None].expand(n, -1, -1)\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "complex": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        positions = torch.polar(torch.ones_like(angle), angle)",
    ),
    "relative batched": (
        "        self.width = d_model",
        "        angle = torch.arange(1 - t, t)[:, None] * (0.9 ** torch.arange(self.width))\n"
        "        positions = angle.sin()[None].expand(n, -1, -1)",
    ),
    "relative": (
        "        self.width = d_model",
        "        angle = torch.arange(1 - t, t)[:, None] * (0.9 ** torch.arange(self.width))\n"
        "        positions = angle.sin()[None]",
    ),
    "batched pairs": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = angle.repeat_interleave(2, dim=-1)[None].expand(n, -1, -1)\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "flat pairs": (
        "        self.width = d_head",
        "        rate = 10000.0 ** (-torch.arange(0, self.width, 2) / self.width)\n"
        "        angle = torch.arange(t)[:, None] * rate\n"
        "        angle = angle.repeat_interleave(2, dim=-1)\n"
        "        positions = (angle.cos(), angle.sin())",
    ),
    "added": (
        "        self.width = d_model",
        "        angle = torch.arange(t)[:, None] * (0.9 ** torch.arange(self.width))\n"
        "        positions = angle.sin()[None].expand(n, -1, -1)",
    ),
}


def forms(
    loaded: Any, names: list[str], code: str, *, cross: bool, more: bool = False
) -> list[str]:
    """Names of the forms to try for a class of a module, the likeliest first.

    With ``more``, those that are rare.
    """
    if not any(n in names for n in POSITIONS):
        return [""]
    own_kind = "axial" if _AXIAL.search(_turning(loaded, code)) else ""
    own_kind = "distances" if _DISTANCES.search(code) else own_kind
    if own_kind:
        return [own_kind]
    if more:
        return _more(loaded, code, cross=cross)
    if "position_embeddings" not in names or _SHIFTED.search(code):
        return ["relative" if "position_embeddings" in names else ""]
    pairs = bool(_PAIRS.search(_turning(loaded, code)))
    own = own_rotary(loaded)
    if own and "mrope" in inspect.getsource(getattr(loaded, own)):
        return ["own three"]
    found = ["own", "own typed", "own three"] if own else []
    found += ["batched pairs", "flat pairs"] if pairs else ["batched", "flat"]
    # Positions that are added to queries alone: no axis of a contract says that.
    return [*found, *([] if cross else ["added"]), ""]


def _more(loaded: Any, code: str, *, cross: bool) -> list[str]:
    """Names of the forms to try where the likely ones do not run."""
    if _SHIFTED.search(code) or "relative_position" in code:
        return ["relative", "relative batched"]
    own = own_rotary(loaded)
    found = ["own", "own typed", "own three", "own named", "own alone"] if own else []
    found += ["own each"] if "position_embeddings[self." in code and own else []
    pairs = bool(_PAIRS.search(_turning(loaded, code)))
    plain = ["flat", "batched", "of heads", "headed"]
    found += ["flat pairs", "batched pairs"] if pairs else plain
    return [*found, "halves", "complex", *([] if cross else ["added"]), "even", ""]


def _turning(loaded: Any, code: str) -> str:
    """The text of the functions that turn queries and keys, as a class calls them."""
    todo, text = [code], dict[str, str]()
    while todo:
        for name in re.findall(r"\b(apply_\w+|rotate_\w+)\(", todo.pop()):
            found = getattr(loaded, name, None)
            if inspect.isfunction(found) and name not in text:
                text[name] = inspect.getsource(found)
                todo.append(text[name])
    return "\n".join(text.values())


def own_rotary(loaded: Any) -> str:
    """The module's own class of rotations, or ''."""
    return next(
        (
            n
            for n, c in vars(loaded).items()
            if isinstance(c, type)
            and n.endswith("RotaryEmbedding")
            and "Vision" not in n
            and c.__module__ == loaded.__name__
        ),
        "",
    )
