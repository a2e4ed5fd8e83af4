"""Which part every argument plays: query, key, value, mask, parameter, number.

Names are read together: ``v`` is a value beside ``q`` and ``k`` and a learned vector beside
``W`` and ``U``; ``source`` is what is attended to, unless a ``memory_bank`` stands beside it.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from regard.check.roles.reading import Parameter, Reading
from regard.check.roles.words import parts, role_of, scalar_of

__all__ = ["ROLES", "Part", "cast", "is_grouping"]

ROLES = (
    *("query", "key", "value", "self", "step", "second", "past", "mask", "lengths", "weights"),
    *("bias", "ids", "scores", "array", "vector", "number", "other"),
)

_ARRAYS = re.compile(r"^[WUV]$|^[WU][a-z_]|^[WU]\d|^w(eight)?s?_|_weights?$|^w[qkvo]$|^[A-Z]$")
_VECTORS = re.compile(r"^(b|v|w|u|g|gain|beta|gamma|v_a|bias|va|b_\w+|bias_\w+|w_score)$")
_TENSORS = re.compile(r"Tensor|ndarray|Array|Float\[|Bool\[|Int\[")
_NUMBERS = re.compile(r"^(Optional\[)?(int|float|bool|str)\b")
# A table of words; a rotary or positional "embedding" is given features.
_TABLE = re.compile(r"(\w+\.)*(\w*(Token|Word|Char|Vocab)\w*)?Embeddings?")
# Which step of a loop it is, or None outside one.
_COUNTERS = re.compile(
    r"^(time_?)?step(_?(idx|index|num|number))?$|^(layer|block)_?(idx|index)$"
)
_WANT_WEIGHTS = re.compile(
    r"^(return|need|output|with|get)_(attn|attention|attentions|weights|alphas?|alignments?|"
    r"attn_weights|attention_weights|attention_scores)$"
)


def is_grouping(name: str) -> bool:
    """Whether a name says which document, segment or group each token belongs to.

    >>> is_grouping("doc_ids"), is_grouping("input_ids")
    (True, False)
    """
    return bool(
        re.search(
            r"^(doc(ument)?|seg(ment)?|group|sample|pack(ed)?|example|episode)s?_?ids?$", name
        )
    )


def _said_weights(name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{re.escape(name)}\b[^.;(]*\b(weights|alignments?)\b")


@dataclass(frozen=True)
class Part:
    """An argument and the part it plays.

    ``role`` is one of :data:`ROLES`: ``query``, ``key``, ``value``, ``self``, ``step`` (what
    a recurrent decoder reads), ``second`` (another memory), ``past``, ``mask``, ``lengths``,
    ``weights``, ``bias``, ``ids``, ``scores``, ``array`` (learned, rank 2), ``vector``
    (learned, rank 1), ``number`` or ``other``.
    """

    name: str
    role: str
    optional: bool = False
    value: object = None  # of a number: the value in the contract's form
    one: bool = False  # a query by a singular name: a single step is as likely as many
    about: str = ""  # of a mask: the argument that it belongs to
    notes: tuple[str, ...] = field(default=())


def cast(reading: Reading) -> tuple[Part, ...]:
    """Decide on the part of every argument of a call that is worth giving.

    Arguments with a default that is a switch or a number are left to their default.
    """
    named = {p.name: role_of(p.name) for p in reading.parameters}
    learned = _learned(reading)
    looked_up = _looked_up(reading)
    numbers = {p.name for p in reading.parameters if _is_number(p, reading)}
    roles: dict[str, str] = {}
    for parameter in reading.parameters:
        name = parameter.name
        if parameter.star:
            continue
        compared = named[name] in ("", "key", "query", "self") and _is_compared(name, reading)
        if (name in looked_up and named[name] != "mask") or compared or is_grouping(name):
            roles[name] = "ids"
        elif name in numbers:
            roles[name] = "number"
        elif name in learned:
            roles[name] = learned[name]
        else:
            roles[name] = str(named[name]) or "other"
    for name, role in list(roles.items()):
        if role == "key" and _said_weights(name).search(reading.words):
            roles[name] = "weights"
        if named[name] == "" and (
            name in ("scores", "logits", "energies", "energy") or _is_softmaxed(name, reading)
        ):
            roles[name] = "scores"
    _together(roles, reading)
    return tuple(_parts(reading, roles))


def _is_softmaxed(name: str, reading: Reading) -> bool:
    """Whether a function that is called a softmax takes an argument as its scores."""
    if reading.owner is not None or "softmax" not in reading.names.lower():
        return False
    return bool(re.search(rf"softmax\({name}\b|\b{name}\.softmax\(", reading.code))


def _parts(reading: Reading, roles: dict[str, str]) -> Iterator[Part]:
    many = {"query", "value"} <= set(roles.values()) and sum(
        r in ("query", "key", "value") for r in roles.values()
    ) >= 3
    content = [n for n, r in roles.items() if r in ("query", "key", "value", "self", "second")]
    for parameter in reading.parameters:
        role = roles.get(parameter.name)
        if role is None:
            continue
        optional = parameter.has_default
        value: object = None
        if role == "number":
            if _WANT_WEIGHTS.match(parameter.name):
                value = True
            elif _is_offset(parameter, reading):
                value = [0, 2]  # twice on one object: what is kept between calls shows
            elif parameter.has_default:
                continue
            else:
                value = _number(parameter)
        elif optional and (
            parameter.default is not None
            or role in ("past", "weights", "other", "step", "query", "ids")
        ):
            continue
        pieces = parts(parameter.name)
        yield Part(
            parameter.name,
            role,
            optional,
            value,
            one=role in ("query", "step") and not many and _is_single(pieces),
            about=_about(parameter.name, content, roles) if role in ("mask", "lengths") else "",
        )


def _together(roles: dict[str, str], reading: Reading) -> None:
    """Settle the roles that depend on each other."""
    content = [n for n, r in roles.items() if r in ("query", "key", "value", "self", "other")]
    if len(content) == 1:
        roles[content[0]] = "self"
    if len(content) < 2:
        return
    strong = [n for n in content if roles[n] == "key" and _is_memory(n)]
    for name in content:
        # `source` beside a `memory_bank` is what asks.
        asked = any(roles[n] == "query" for n in content)
        if roles[name] == "key" and strong and name not in strong and not asked:
            roles[name] = "query"
    recurrent = re.search(r"\b(GRU|LSTM|RNN)(Cell)?\b", reading.code) is not None
    if recurrent and len(content) >= 3 and any(roles[n] == "key" for n in content):
        for name in content:
            word = re.search(r"word|token|emb|input|^x$|^y$|^inp", name)
            if word and not re.search(r"encoder|enc_", name):
                roles[name] = "step"
    for name in [n for n in content if roles[n] in ("self", "other")]:
        roles[name] = _loose(name, roles, content)
    here = {roles[n] for n in content}
    queries = [n for n in content if roles[n] == "query"]
    if len(queries) > 1 and not here & {"key", "value"}:
        roles[queries[-1]] = "key"
    if not here & {"query", "self", "step"}:
        first = next((n for n in content if roles[n] == "key"), None)
        if first is not None:
            roles[first] = "query"
    for name in [n for n in content if roles[n] == "key"][1:]:
        roles[name] = "second"


def _loose(name: str, roles: dict[str, str], content: list[str]) -> str:
    """Role of an argument whose name says nothing, by what is missing among the others."""
    here = {roles[n] for n in content}
    if "query" not in here:
        later = [n for n in content if n != name and roles[n] in ("self", "other")]
        return "query" if later or "key" in here else "self"
    if not here & {"key", "value"}:
        return "key"
    if re.search(r"word|token|emb|input", name):
        return "step"
    return "second" if "key" in here else roles[name]


def _is_offset(parameter: Parameter, reading: Reading) -> bool:
    """Whether a number is the position of the first query, 0 by default."""
    pieces = set(parts(parameter.name))
    return (
        parameter.default == 0
        and parameter.has_default
        and not isinstance(parameter.default, bool | float)
        and bool(pieces & {"offset", "start", "position", "pos", "shift"})
        and re.search(r"\bcos\(|rot", reading.code) is not None
    )


def _is_single(pieces: tuple[str, ...]) -> bool:
    """Whether a name speaks of one step: ``state``, ``word``, ``query``; not ``x``."""
    return pieces[-1] not in ("x", "y", "target", "tgt", "trg", "input") and not pieces[
        -1
    ].endswith(("ies", "s"))


def _is_memory(name: str) -> bool:
    return bool({"memory", "encoder", "enc", "bank", "context", "ctx"} & set(parts(name)))


def _about(name: str, content: list[str], roles: dict[str, str]) -> str:
    """The argument that a mask's name mentions, else the side that it names."""
    pieces = set(parts(name))
    for other in content:
        if other in name.split("_") or (set(parts(other)) & pieces - {"states", "s"}):
            return other
    side = ""
    if pieces & {"tgt", "trg", "target", "dec", "decoder", "query", "q", "queries"}:
        side = "query"
    elif pieces & {"src", "source", "enc", "encoder", "memory", "key", "k", "keys", "context"}:
        side = "key"
    return next((n for n in content if side and roles[n] == side), "")


def _learned(reading: Reading) -> dict[str, str]:
    """Arguments of a function that are learned arrays."""
    names = [p.name for p in reading.parameters]
    if reading.owner is not None:
        return {}
    arrays = [n for n in names if _ARRAYS.search(n) and n not in ("X", "Q", "K", "V", "H", "S")]
    if "V" in names and not {"Q", "K"} & set(names) and arrays:
        arrays.append("V")
    found = dict.fromkeys(arrays, "array")
    asked = any(role_of(n) in ("query", "key") for n in names if n not in found)
    for name in names:
        is_vector = _VECTORS.match(name) is not None
        if name in found or not is_vector:
            continue
        if (
            name == "v"
            and not arrays
            and {"q", "k", "query", "key", "queries", "keys"} & set(names)
        ):
            continue
        if name == "bias" and not arrays:
            continue
        if arrays or asked or len(names) > 1:
            found[name] = "vector"
    return found


def _looked_up(reading: Reading) -> set[str]:
    """Arguments whose numbers are ids: given to an embedding, or indexing a table."""
    if reading.call is None:
        return set()
    tables = set()
    for node in reading.walk():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            text = ast.unparse(node.value.func)
            if _TABLE.fullmatch(text):
                tables |= {t.attr for t in node.targets if isinstance(t, ast.Attribute)}
    names = {p.name for p in reading.parameters}
    found = set()
    for node in ast.walk(reading.call):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first = node.args[0]
        func = node.func
        is_table = isinstance(func, ast.Attribute) and func.attr in tables
        is_call = ast.unparse(func).endswith(("F.embedding", "functional.embedding", "one_hot"))
        if (is_table or is_call) and isinstance(first, ast.Name) and first.id in names:
            found.add(first.id)
    return found


def _is_compared(name: str, reading: Reading) -> bool:
    """Whether an argument is only compared for equality: ids, of which one is padding."""
    if reading.call is None:
        return False
    sides = set()
    for node in ast.walk(reading.call):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            sides |= {id(node.left), id(node.comparators[0])}
        elif isinstance(node, ast.Attribute) and node.attr in ("shape", "size", "device"):
            sides.add(id(node.value))
    uses = [n for n in ast.walk(reading.call) if isinstance(n, ast.Name) and n.id == name]
    return bool(uses) and all(id(n) in sides for n in uses)


def _is_number(parameter: Parameter, reading: Reading) -> bool:  # noqa: PLR0911 - one a hint
    text = parameter.annotation
    if _TENSORS.search(text):
        return False
    if _NUMBERS.search(text) or parameter.is_flag:
        return True
    if parameter.has_default and isinstance(parameter.default, int | float):
        return True
    if parameter.has_default and parameter.default is not None:
        return True
    if parameter.has_default and _COUNTERS.match(parameter.name):
        return True
    if _WANT_WEIGHTS.match(parameter.name):
        return True
    if role_of(parameter.name) in ("mask", "bias", "key", "query", "value", "self", "weights"):
        return False
    if role_of(parameter.name) == "lengths" or _VECTORS.match(parameter.name):
        return False
    if len(parameter.name) == 1:
        return bool(
            re.search(rf"range\({parameter.name}\)|// {parameter.name}\b", reading.code)
        )
    return bool(scalar_of(parameter.name)) and _counts(parameter.name, reading)


def _counts(name: str, reading: Reading) -> bool:
    """Whether the code uses a name as a plain number and never as an array."""
    if reading.call is None:
        return False
    for node in ast.walk(reading.call):
        if isinstance(node, ast.Attribute) and _is(node.value, name):
            return False
        if isinstance(node, ast.Subscript) and _is(node.value, name):
            return False
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.MatMult)
            and (_is(node.left, name) or _is(node.right, name))
        ):
            return False
    return True


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _number(parameter: Parameter) -> object:
    text = scalar_of(parameter.name) or "2"
    try:
        return ast.literal_eval(text)
    except ValueError:
        return text
