"""Names and axes of what comes back, and which of it is the alignment."""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from regard.check.contract import Contract, Returned
from regard.check.roles.reading import Reading
from regard.check.roles.sizing import named
from regard.check.sizes import Sizes, names_in
from regard.check.subject import Outcome

__all__ = ["Results", "alignment", "results"]

_WEIGHTS = re.compile(
    r"^(attn|attention|attentions)$|weights?|alphas?$|^a$|align|attn|probs?$|^p_?attn|attention_(w|p|d)|"
    r"distribution",
    re.IGNORECASE,
)
_NO_WEIGHTS = re.compile(
    r"score|logit|energ|output|context|coverage|attended|hidden", re.IGNORECASE
)
_LIBRARIES = ("torch", "np", "numpy", "F", "nn", "math", "self", "einops", "functional", "jnp")
_LOG = re.compile(r"log_?(softmax|prob|weights?|alpha)", re.IGNORECASE)


@dataclass(frozen=True)
class Results:
    """What a call returns, as a contract states it, and how odd the axes are."""

    returns: tuple[Returned, ...]
    weights: str | None
    sums_over: tuple[int, ...]
    how: str  # how the weights were recognised
    sure: bool
    odd: float


def results(
    reading: Reading,
    contract: Contract,
    runs: tuple[Outcome, Outcome],
    sizes: tuple[Sizes, Sizes],
) -> Results:
    """Name the axes of the outputs of runs at two sets of sizes.

    Parameters
    ----------
    reading : Reading
    contract : Contract
        With the axes of the inputs.
    runs, sizes : pairs
        The two runs and the sizes of each.
    """
    first, second = runs
    count = len(first.outputs)
    names = _names(reading, count)
    tokens = _tokens(contract)
    returns: list[Returned] = []
    odd = 0.0
    for i in range(count):
        a, b = first.outputs[i], second.outputs[i] if i < len(second.outputs) else None
        if a is None or b is None or a.dtype == object or a.ndim != b.ndim:
            if a is not None:
                odd += 1.0
            continue
        axes: list[str] = []
        for at in range(a.ndim):
            token = _axis(a.shape[at], b.shape[at], sizes, tokens)
            if token is None:
                axes = []
                odd += 2.0
                break
            axes.append(token)
        if axes or a.ndim == 0:
            returns.append(Returned(names[i], " ".join(axes), _role(names[i], a, reading)))
            odd += _odd(axes, contract)
        else:
            break
    weights, over, how, sure = alignment(reading, contract, returns, first)
    returns = [_attentional(r, weights, reading) for r in returns]
    returns = [_every_step(r, weights, returns, reading) for r in returns]
    if any(o is None for o in first.outputs[: len(returns)]):
        returns, weights, over = [], None, ()
    return Results(tuple(returns), weights, over, how, sure, odd)


def _tokens(contract: Contract) -> list[str]:
    """Axis tokens of the inputs, whole ones first, then the names inside."""
    whole = [t for axes in contract.inputs.values() for t in axes.split()]
    init = list(contract.init.values())
    init += [w for v in init if isinstance(v, Mapping) for w in v.values()]
    whole += [v for v in init if isinstance(v, str) and "'" not in v]
    whole += [v for v in contract.values.values() if isinstance(v, str) and "'" not in v]
    inner = [n for t in whole for n in names_in(t)]
    return [t for t in dict.fromkeys((*whole, *inner)) if not t.isdigit()]


def _axis(a: int, b: int, sizes: tuple[Sizes, Sizes], tokens: list[str]) -> str | None:
    if a == b == 1:
        return "1"
    for token in tokens:
        if sizes[0].value(token) == a and sizes[1].value(token) == b:
            return token
    plain = list(dict.fromkeys(n for t in tokens for n in names_in(t)))
    plain += ["heads"] if "d_model" in plain else []
    here = named(a, sizes[0], plain)
    both = [e for e in here if sizes[1].value(e) == b]
    if both:
        return both[0]
    composite = [t for t in tokens if not t.isidentifier()]
    for x in composite:
        for y in tokens:
            for text in (f"{x}+{y}", f"({x})*{y}" if "+" in x else f"{x}*{y}"):
                if sizes[0].value(text) == a and sizes[1].value(text) == b:
                    return text
    return str(a) if a == b else None


def _odd(axes: Iterable[str], contract: Contract) -> float:
    """How unlikely these axes of a result are."""
    axes = list(axes)
    names = [n for t in axes for n in names_in(t)]
    odd = 0.0
    if names.count("batch") > 1:
        odd += 3.0
    batched = any("batch" in t for axes in contract.inputs.values() for t in axes.split())
    if batched and "batch" not in names:
        odd += 2.0
    features = [i for i, t in enumerate(axes) if any(n.startswith("d_") for n in names_in(t))]
    if len(features) > 1 and not {"heads", "kv_heads"} & set(names):
        odd += 0.5
    inputs = [t.split() for t in contract.inputs.values()]
    last = any(t and t[-1].startswith("d_") for t in inputs)
    times = ("T", "T_enc", "T_dec")
    if (
        features
        and axes[-1] in times
        and last
        and not any(t[-1:] == [axes[-1]] for t in inputs)
    ):
        odd += 1.0
    return odd


def _names(reading: Reading, count: int) -> list[str]:
    """Names of the results from the last return statement."""
    found: list[str] = []
    for node in (_written_out(n, reading) for n in _returns(reading)):
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        if isinstance(node, ast.Dict):
            found = [ast.unparse(k).strip("'\"") if k else "" for k in node.keys]
        elif len(parts) == count or not found:
            found = [_name(p) for p in parts]
    found = [f if re.fullmatch(r"[A-Za-z_]\w*", f) else "" for f in found]
    found = [*found, *([""] * count)][:count]
    named_ = []
    for i, name in enumerate(found):
        own = name or ("out" if count == 1 else "context" if i == 0 else f"result_{i + 1}")
        named_.append(own if own not in named_ else f"{own}_{i + 1}")
    return named_


def _written_out(node: ast.expr, reading: Reading) -> ast.expr:
    """The tuple behind ``return outputs``, where a name stands for one."""
    if isinstance(node, ast.Name) and reading.call is not None:
        for inner in ast.walk(reading.call):
            if isinstance(inner, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == node.id for t in inner.targets
            ):
                value = inner.value.body if isinstance(inner.value, ast.IfExp) else inner.value
                if isinstance(value, ast.Tuple):
                    return value
    return (
        node.body if isinstance(node, ast.IfExp) and isinstance(node.body, ast.Tuple) else node
    )


def _returns(reading: Reading) -> list[ast.expr]:
    if reading.call is None:
        return []
    inner = {
        id(r)
        for n in ast.walk(reading.call)
        if isinstance(n, ast.FunctionDef | ast.Lambda) and n is not reading.call
        for r in ast.walk(n)
        if isinstance(r, ast.Return)
    }
    return [
        n.value
        for n in ast.walk(reading.call)
        if isinstance(n, ast.Return) and n.value is not None and id(n) not in inner
    ]


def _name(node: ast.expr) -> str:  # noqa: PLR0911 - one a form
    """The name that an expression is about: ``alpha[..., 0]``, ``torch.stack(alphas, 1)``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.IfExp):
        return _name(node.body)
    if isinstance(node, ast.Call) and "softmax" in ast.unparse(node.func):
        return "log_weights" if "log_softmax" in ast.unparse(node.func) else "weights"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if isinstance(owner, ast.Name) and owner.id in _LIBRARIES:
            if owner.id == "self":
                return node.func.attr
            return _name(node.args[0]) if node.args and node.func.attr == "stack" else ""
        return _name(owner)
    if isinstance(node, ast.Attribute) and re.match(r"self\b", ast.unparse(node)):
        return node.attr  # what an object keeps is named by its attribute
    if isinstance(node, ast.Subscript | ast.Attribute):
        return _name(node.value)
    return ""


def alignment(
    reading: Reading, contract: Contract, returns: list[Returned], run: Outcome
) -> tuple[str | None, tuple[int, ...], str, bool]:
    """Which result is the alignment: name, axis that sums to one, how it was told, if sure."""
    key = contract.key_axis
    if key is None:
        return None, (), "", False
    best: tuple[float, str, int, str] | None = None
    for i, returned in enumerate(returns):
        tokens = returned.axes.split()
        # A fixed axis of one query may have vanished; an axis of keys must be there.
        over = _key_at(tokens, key)
        array = run.outputs[i]
        if over is None or array is None or returned.role == "index":
            continue
        log = bool(_LOG.search(returned.name))
        values = np.exp(array) if log else array
        feature = any(n.startswith("d_") for t in tokens for n in names_in(t))
        says = bool(_WEIGHTS.search(returned.name)) and not _NO_WEIGHTS.search(returned.name)
        if len(returns) == 1 and not feature:
            says |= bool(
                re.search(
                    r"weights|softmax|alignment", f"{reading.words} {reading.names}", re.I
                )
            )
        with np.errstate(all="ignore"):
            sums = values.sum(axis=over)
            is_stochastic = bool(np.all(values >= -1e-6)) and bool(
                np.allclose(sums, 1, atol=1e-3)
            )
        score = 2.0 * says + 1.5 * is_stochastic - 2.0 * feature
        if log and not is_stochastic:
            continue
        if score >= 1.5 and (best is None or score > best[0]):
            how = "its name" if says else "its rows sum to one"
            best = (score, returned.name, over, how)
    if best is None:
        return None, (), "", False
    return best[1], (best[2],), best[3], best[3] == "its name"


def _key_at(tokens: list[str], key: str) -> int | None:
    if key in tokens:
        return max(i for i, t in enumerate(tokens) if t == key)
    return None


def _role(name: str, array: np.ndarray, reading: Reading) -> str:
    if np.issubdtype(array.dtype, np.integer) or array.dtype == bool:
        return "index"
    if _LOG.search(name) and bool(np.all(array <= 1e-6)):
        return "log_weights"
    return ""


def _every_step(
    returned: Returned, weights: str | None, returns: list[Returned], reading: Reading
) -> Returned:
    """Weights of all steps, where the author says that all come back and only one does."""
    tokens = returned.axes.split()
    every = any("T_dec" in r.axes.split() for r in returns if r.name != weights)
    if returned.name != weights or not every or "T_dec" in tokens or tokens.count("1") != 1:
        return returned
    said = re.search(
        r"(every|each|all|whole|full|complete)\b[^.]*\b(alignments?|weights|attention)",
        reading.words,
    )
    axes = " ".join("T_dec" if t == "1" else t for t in tokens)
    return Returned(returned.name, axes, returned.role) if said else returned


def _attentional(returned: Returned, weights: str | None, reading: Reading) -> Returned:
    if returned.name == weights or returned.role:
        return returned
    said = re.search(r"attentional|tanh\(W\w* ?\[", reading.words)
    return Returned(returned.name, returned.axes, "attentional") if said else returned
