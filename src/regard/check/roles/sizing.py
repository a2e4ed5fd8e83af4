"""Names for unknown sizes: the first guess for every variable, and numbers back to names.

A variable (``f_query``, ``c_units``, ``w_n_in``) first gets a canonical name of its own, by
its word if the word says whose size it is. A crash then shows two numbers that must agree;
:func:`named` turns the wanted number into an expression of names again.
"""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regard.check.roles.cast import Part
from regard.check.roles.layouts import Choice, Layouts
from regard.check.roles.reading import Parameter, Reading
from regard.check.roles.words import parts, scalar_of, size_of
from regard.check.sizes import Sizes

__all__ = ["Start", "given", "named", "start", "substitute"]

_POOL = (
    "d_h",
    "d_emb",
    "d_attn",
    "d_v",
    "d_s",
    "d_k",
    "d_ff",
    *(f"d_{i}" for i in range(1, 30)),
)
_BY_ROLE = {
    **{"query": "d_s", "key": "d_h", "value": "d_v", "self": "d_h", "step": "d_emb"},
    **{"second": "d_emb", "past": "d_k", "other": "d_emb"},
}
_BY_HEAD = {"query": "d_head", "key": "d_k", "value": "d_v", "past": "d_attn", "self": "d_head"}
_AXES = (
    *("batch", "heads", "kv_heads", "layers", "dirs", "beam", "height", "width", "n_features"),
    *("T", "T_enc", "T_dec", "T_mem"),
)
_HEADED = ("d_v", "d_k", "d_s", "d_h")
_VARIABLE = re.compile(r"\b[fcw]_\w+|\b(?:n_features|kv_heads|T(?:_enc|_dec|_mem)?)\b")


@dataclass(frozen=True)
class Start:
    """The first names of all variables, and which of them the author's words fix.

    ``init`` holds the constructor's arguments over variables.
    """

    names: Mapping[str, str]
    firm: frozenset[str]
    init: Mapping[str, object]
    unknown: tuple[str, ...] = ()  # constructor arguments that nothing here can make


def substitute(text: str, names: Mapping[str, str]) -> str:
    """Replace variables by their names inside an axis expression.

    >>> substitute("2*c_enc", {"c_enc": "d_h+d_s"})
    '2*(d_h+d_s)'
    """

    def one(match: re.Match[str]) -> str:
        name = names.get(match.group(), match.group())
        alone = match.group() == text
        return name if alone or re.fullmatch(r"\w+", name) else f"({name})"

    return _VARIABLE.sub(one, text)


def start(reading: Reading, layouts: Layouts, choice: Choice) -> Start:
    """Give every variable of a choice a first name."""
    names: dict[str, str] = {}
    firm: set[str] = set()
    init, unknown = _options(reading, names, firm)
    roles = {p.name: p for p in layouts.parts}
    owners = _owners(choice, roles)
    for variable, (part, tokens) in owners.items():
        if variable in names:
            continue
        word = layouts.variables.get(variable, "")
        size, says = size_of(word) if word else ("", False)
        if word in (*_POOL, "d_head", "d_model"):
            names[variable] = word
            firm.add(variable)
        elif says and size.startswith("d_") and size not in names.values():
            names[variable] = size
            firm.add(variable)
        else:
            taken = {n for v, n in names.items() if v not in firm or v[:2] != "c_"}
            claimed = set(names.values()) - taken
            names[variable] = _for_role(part, tokens, taken, claimed)
            vague = re.fullmatch(r"[a-zA-Z]|_|dim|size|width|features?", word)
            if word and not vague and not _falls_back(reading):
                firm.add(variable)
    return Start(names, frozenset(firm), init, unknown)


def _falls_back(reading: Reading) -> bool:
    """Whether the constructor has a size that is another one unless it is given.

    Sizes with words of their own are then different ones only where it is.
    """
    missing = [o.name for o in reading.options if o.has_default and o.default is None]
    return any(re.search(r"(dim|size|width|units|features)$", name) for name in missing)


def _owners(
    choice: Choice, roles: Mapping[str, Part]
) -> dict[str, tuple[Part, tuple[str, ...]]]:
    found: dict[str, tuple[Part, tuple[str, ...]]] = {}
    order = ("array", "vector")
    names = sorted(choice.axes, key=lambda n: roles[n].role in order)
    for name in names:
        tokens = choice.axes[name].tokens
        for token in tokens:
            for variable in re.findall(r"\b[fw]_\w+", token):
                found.setdefault(variable, (roles[name], tokens))
    return found


def _for_role(part: Part, tokens: tuple[str, ...], taken: set[str], claimed: set[str]) -> str:
    """A name by the argument's role; the constructor's ``dec_size`` is the state's size."""
    headed = any("heads" in t for t in tokens)
    if part.role in ("array", "vector"):
        wanted = ["d_attn", "d_k", "d_ff"]
    else:
        wanted = [(_BY_HEAD if headed else _BY_ROLE).get(part.role, "d_h")]
    if part.role == "value" and not claimed & {"d_v"} and "d_h" in claimed:
        wanted = ["d_h", *wanted]
    if part.role not in ("query", "key", "value", "step"):
        wanted = [n for n in wanted if n not in claimed]
    pool = [*wanted, *(n for n in _POOL if n not in claimed)]
    return next(n for n in pool if n not in taken)


def given(reading: Reading) -> Mapping[str, object]:
    """Literals that the constructor is given, sizes left out."""
    init, _ = _options(reading, {}, set())
    return {n: v for n, v in init.items() if not isinstance(v, str)}


def _options(
    reading: Reading, names: dict[str, str], firm: set[str]
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Values for the constructor: sizes as variables, the rest as literals."""
    init: dict[str, object] = {}
    unknown = []
    generic: list[Parameter] = []
    heads = "|".join(o.name for o in reading.options if size_of(o.name)[0] == "heads")
    for option in reading.options:
        if option.star or option.is_flag:
            continue
        variable = f"c_{option.name}"
        value = _literal(option, reading)
        if value is not None:
            _put(init, option, value)
            continue
        if option.has_default and (option.default is None or option.name == "dtype"):
            continue
        size, says = _size_of(option, heads, reading)
        is_size = bool(size) and not isinstance(option.default, float)
        if is_size and says and size not in names.values():
            names[variable] = size
            firm.add(variable)
            _put(init, option, variable)
        elif is_size:
            generic.append(option)
            _put(init, option, variable)
        elif not option.has_default:
            value = _option(option, reading)
            if value is not None:
                _put(init, option, value)
            elif re.search(r"Module|Config|Callable|[dD]ict|config", option.annotation):
                unknown.append(option.name)
            else:
                generic.append(option)
                _put(init, option, variable)
    _generic(generic, reading, names)
    return init, tuple(unknown)


def _size_of(option: Parameter, heads: str, reading: Reading) -> tuple[str, bool]:
    """Which size an argument is by its name and by what the code does with the heads."""
    if scalar_of(option.name).isdigit():
        return "", False
    if heads and re.search(rf"\b({heads})\s*\*\s*{option.name}\b", reading.code):
        return "d_head", True
    size, says = size_of(option.name)
    if size in _HEADED and _is_split(option.name, heads, reading):
        return f"heads*{size}", True
    return size, says


def _put(init: dict[str, object], option: Parameter, value: object) -> None:
    """Give a value to an argument, or to the attribute of the argument that owns it."""
    if not option.owner:
        init[option.name] = value
        return
    table = init.setdefault(option.owner, {})
    assert isinstance(table, dict)
    table[option.name] = value


def _literal(option: Parameter, reading: Reading) -> object:
    """A value that no size decides, or None."""
    name = option.name
    if name == "device" and not option.has_default:
        return "'cpu'"
    if name in ("temperature", "temper", "temp") and not option.has_default:
        return 6.0  # about the root of a size, which it usually is
    if option.has_default and option.default is None and "scale" in parts(name):
        return 0.125 if _replaces(option, reading) else None
    if option.owner and re.search(r"bias$|flash|_norm$|^use_|^is_|^causal", name):
        return name.endswith("bias")
    if option.owner and re.search(r"p?drop(out)?(_prob|_rate|_p)?$", name):
        return 0.0
    return None


def _generic(options: list[Parameter], reading: Reading, names: dict[str, str]) -> None:
    """Name the sizes whose own names say only that they are sizes."""
    heads = [v for v in names if names[v] == "heads"]
    divided = [o for o in options if heads and _divides(o.name, heads[0][2:], reading)]
    # With a head size of its own, the width need not be a multiple of it.
    model = divided or ([] if "d_head" in names.values() or not heads else options[:1])
    for option in options:
        variable = f"c_{option.name}"
        taken = set(names.values())
        hint = size_of(option.name)[0]
        if option in model and "d_model" not in taken:
            names[variable] = "d_model"
            continue
        if hint not in ("", "d_model", "heads", "kv_heads") and hint not in taken:
            names[variable] = hint
            continue
        pool = ("d_emb", *_POOL) if heads else _POOL
        names[variable] = next(n for n in pool if n not in taken)


def _is_split(option: str, heads: str, reading: Reading) -> bool:
    """Whether the code divides a size by one of the numbers of heads."""
    return any(_divides(option, each, reading) for each in heads.split("|") if each)


def _divides(option: str, heads: str, reading: Reading) -> bool:
    own = rf"(\w+\.)?_?{re.escape(option)}"
    by = rf"(\w+\.)?_?({re.escape(heads)}|h|heads|n_heads|num_heads|nhead|n_head)"
    split = re.search(rf"\b{own}\s*(//|%|/)\s*{by}\b", reading.code)
    fused = re.search(rf"MultiheadAttention\(\s*(embed_dim=)?{own}\b", reading.code)
    return bool(split or fused)


def _replaces(option: Parameter, reading: Reading) -> bool:
    """Whether an option that defaults to None stands in for a default scale."""
    return bool(
        re.search(rf"\b{option.name} is None\b|\b{option.name} is not None\b", reading.code)
    ) and bool(re.search(rf"\b{option.name}\b[^.\n]*\breplaces?\b", reading.words))


def _option(option: Parameter, reading: Reading) -> object:
    text = scalar_of(option.name)
    if option.annotation == "bool":
        return False
    if option.annotation == "str" or not text:
        # Which texts the code compares it with.
        own = rf"(?:self\.)?{re.escape(option.name)}"
        found = re.search(rf"\b{own}\s*(?:==|!=|(?:not )?in)\s*[\[(]?\s*'(\w+)'", reading.code)
        return f"'{found.group(1)}'" if found else None
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        return text if text in _AXES else None


def named(  # noqa: PLR0912 - one a form
    number: int, sizes: Sizes, names: Iterable[str]
) -> list[str]:
    """Expressions of the given names that have this size, the simplest first.

    >>> sizes = Sizes(0)
    >>> named(2 * sizes["d_h"], sizes, ["d_h", "d_s"])[0]
    '2*d_h'
    >>> named(sizes["d_h"] + sizes["d_s"], sizes, ["d_h", "d_s"])[0]
    'd_h+d_s'
    """
    known = {n: sizes[n] for n in dict.fromkeys(names)}
    features = [n for n in known if n.startswith("d_")]
    found = [n for n, size in known.items() if size == number]
    for a, b in itertools.combinations_with_replacement(features, 2):
        if a != b and known[a] + known[b] == number:
            found.append(f"{a}+{b}")
    for times in (2, 3, 4):
        found += [f"{times}*{n}" for n in features if times * known[n] == number]
    if known.get("heads", 0) * known.get("d_head", 0) == number:
        found = [n for n in found if n.isidentifier()] + ["heads*d_head", *found]
    for counts in ("heads", "kv_heads", "dirs", "layers", "batch", "beam"):
        if counts not in known:
            continue
        for n, size in known.items():
            if n != counts and known[counts] * size == number:
                found.append(f"{counts}*{n}")
    for n in features:
        if "heads" in known and known[n] == number * known["heads"]:
            found.append(f"{n}//heads")
    for a, b in itertools.permutations(features, 2):
        if 2 * known[a] + known[b] == number:
            found.append(f"2*{a}+{b}")
    if {"height", "width"} <= set(known) and known["height"] * known["width"] == number:
        found.append("height*width")
    lengths = sorted((n for n in known if n[0] == "T"), key=lambda n: n != "T_mem")
    for a, b in itertools.combinations(lengths, 2):  # what is cached comes first
        if known[a] + known[b] == number:
            found.append(f"{a}+{b}")
    return list(dict.fromkeys(found))
