"""Everything that is given takes part: inputs, their features, learned arrays."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.many import Answer, answers
from regard.check.relations.receptive import cool
from regard.check.subject import Crash, Outcome

__all__ = ["inputs_matter", "moved", "parameters_matter", "values_matter", "weights_need_query"]

_RANKS = frozenset({"topk", "sort", "argsort"})


@relation("inputs-matter", "every argument moves a result", cost=2)
def inputs_matter(bench: Bench) -> Verdict | None:
    """Change one argument after the other, and each half of its features."""
    here = layout(bench)
    if not bench.contract.returns:
        return None
    names = [*here.content, *(n for n in bench.probe.floats() if here.is_learned(n))]
    pieces = [(n, where, what) for n in names for where, what in _pieces(here, n)]
    learned = [p for p in pieces if here.is_learned(p[0])]
    given = [p for p in pieces if p not in learned]
    for group in (given, learned):
        variants = [{n: here.noised(n, **where)} for n, where, _ in group]
        for (name, _, what), answer in zip(group, answers(here, variants), strict=True):
            # What is given for the sake of a context must reach it, not the weights alone.
            if answer is None or moved(here, answer, contexts=name in here.content):
                continue
            if _is_mask(here, name):
                continue
            code = "RG305" if name in here.query_parts() and here.keys else "RG701"
            return fails(
                code,
                f"{what} changes no result",
                about=name,
                measured=(Measurement("largest change of a result", "0", "must not be 0"),),
                hidden="every shape is right and nothing raises",
            )
    return holds() if names else None


def _is_mask(here: Layout, name: str) -> bool:
    """Whether ids matter by their padding alone: a mask is made of them, and no content."""
    if here.contract.kinds.get(name) != "token_ids_pad0":
        return False
    value = here.probe.args[name]
    out = here.bench.ok(**{name: np.where(value == 0, 1, value)})
    return out is not None and moved(here, Answer(here, out, slice(None)))


@relation("weights-need-query", "other queries, other weights", cost=1)
def weights_need_query(bench: Bench) -> Verdict | None:
    """Change the queries and watch the returned weights."""
    here = layout(bench)
    if bench.contract.score in ("pooling", "none", None) or not here.keys:
        return None
    before = here.alignment(bench.out)
    parts = here.query_parts()
    if before is None or not parts or here.n_keys < 2:
        return None
    for salt in (1, 2):
        out = bench.ok(**{n: here.noised(n, salt) for n in parts})
        after = here.alignment(out) if out is not None else None
        if after is None:
            return None
        if np.abs(after - before).max() > 1e-5:
            return holds()
    return fails(
        "RG305",
        f"`{bench.contract.weights}` is the same whatever the query "
        f"({', '.join(f'`{p}`' for p in parts)}): its part cancels in the softmax",
        about=parts[0],
        measured=(Measurement("change of the weights", "0", "must not be 0"),),
        depends_on=("score",),
        hidden="the weights are a distribution and learn an average",
    )


@relation("parameters-matter", "every learned array has a gradient", cost=3, everywhere=False)
def parameters_matter(bench: Bench) -> Verdict | None:
    """Ask for gradients (PyTorch) or change single entries (NumPy)."""
    here = layout(bench)
    if bench.instance.library != "torch":
        return _entries_matter(bench, here)
    roles = {r.role for r in bench.contract.returns}
    if roles == {"index"} or bench.contract.dtype in ("float16", "bfloat16"):
        return None
    found = bench.instance.gradients(bench.probe.args)
    if isinstance(found, Crash) or not found:
        return None
    tables = _tables(bench.instance.module)
    # Units of a rectifier that no example turns on get none, rightly.
    rectified = "relu" in bench.case.loaded.source.lower()
    ranks: Verdict | None = None
    largest = max(
        (float(np.nanmax(np.abs(g))) for g in found.values() if g is not None and g.size),
        default=0.0,
    )
    for name, gradient in found.items():
        kind, short = name.split(":", 1)
        if kind == "input" and short not in here.content:
            continue
        if "bias" in short.rsplit(".", 1)[-1] or short in ("b", "b_a"):
            continue  # a bias on keys or on the score cancels in the softmax, rightly
        verdict = _dead(
            name, gradient, short in tables or kind == "input" or rectified, largest
        )
        top = 0.0 if gradient is None else float(np.abs(gradient).max())
        faint = kind == "param" and verdict is None and top < 1e-4 * largest
        if faint and _cancels(bench, here, short):
            verdict = _dead(name, None, True, largest)
        if verdict is None or (gradient is not None and _wakes(bench, name, gradient)):
            continue
        if verdict.rule == "RG701" and kind == "param" and _only_ranks(bench, short):
            ranks = ranks or replace(
                verdict,
                message=f"parameter `{short}` acts on the results by the ranks that it gives "
                "alone, which have no gradient: it learns by a loss of its own or never",
                level="note",
            )
            continue
        return verdict
    return ranks or holds()


def _only_ranks(bench: Bench, name: str) -> bool:
    """Whether a parameter reaches the results through a choice by rank, and in no other way."""
    trace = bench.trace
    start = getattr(trace, "params", {}).get(name)
    if start is None:
        return False
    live = trace.above(*(o for o in trace.outputs if o is not None))
    todo, seen, ranked = [start], set[int](), False
    while todo:
        node = todo.pop()
        if node.index in seen or node.index not in live or node.op.endswith("_like"):
            continue  # of what another is like, the shape alone counts
        seen.add(node.index)
        if node.op in _RANKS and not node.dtype.startswith(("float", "bfloat")):
            ranked = True
        elif any(node is o for o in trace.outputs):
            return False
        elif not node.dtype.startswith(("bool", "int", "uint")):  # those carry no gradient on
            todo += node.uses
    return ranked


def _wakes(bench: Bench, name: str, gradient: np.ndarray) -> bool:
    """Whether entries without a gradient get one elsewhere.

    Among cooler scores, where no weight is exactly one; in a longer sequence, of which a
    table of positions or distances uses more rows.
    """
    dead = gradient == 0
    if not dead.any() or np.isnan(gradient).any():
        return False
    args = [{**bench.probe.args, **cool(layout(bench))}]
    benches = [bench]
    lengths = [n for n in ("T", "T_enc", "T_dec") if n in bench.contract.every_axis]
    if dead.any(axis=None) and not dead.all() and not set(lengths) & set(bench.contract.sizes):
        longer = {n: 2 * bench.sizes[n] + 1 for n in lengths}
        benches.append(bench.case.bench(bench.sizes.which, **longer))
        args.append(benches[-1].probe.args)
    for each, given in zip(benches, args, strict=True):
        found = each.instance.gradients(given) if each.instance.crash is None else {}
        again = found.get(name) if isinstance(found, dict) else None
        if again is not None and again.shape == gradient.shape and (again[dead] != 0).any():
            return True
    return False


def _cancels(bench: Bench, here: Layout, name: str) -> bool:
    """Whether a parameter of faint gradient, changed by much, changes no result."""
    import torch  # noqa: PLC0415 - the code under test runs on it

    other = bench.fresh()
    parameter = dict(other.module.named_parameters()).get(name)
    if parameter is None:
        return False
    with torch.no_grad():
        parameter.add_(0.5 + parameter.abs())
    out = other.call(bench.probe.args)
    return isinstance(out, Outcome) and not moved(here, Answer(here, out, slice(None)))


@relation("values-matter", "each listed value of an argument gives another result", cost=1)
def values_matter(bench: Bench) -> Verdict | None:
    """Call with each of the values that are declared as a list."""
    listed = {n: v for n, v in bench.contract.values.items() if isinstance(v, list)}
    here = layout(bench)
    for name, values in listed.items():
        given = bench.probe.args[name]
        fresh = bench.fresh()
        for value in values:
            if bench.sizes.value(value) == given:
                continue
            out = fresh.call({**bench.probe.args, name: bench.sizes.value(value)})
            if isinstance(out, Crash) or moved(here, Answer(here, out, slice(None))):
                continue
            return fails(
                "RG701",
                f"`{name}` = {value} and `{name}` = {given} give the same result",
                about=name,
                depends_on=("values",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if listed else None


def _dead(
    name: str, gradient: np.ndarray | None, whole: bool, largest: float
) -> Verdict | None:
    kind, short = name.split(":", 1)
    what = "parameter" if kind == "param" else "argument"
    if gradient is not None and np.isnan(gradient).any():
        return fails(
            "RG702",
            f"the gradient of `{short}` is NaN while the result is finite",
            about=short,
            measured=(Measurement(f"gradient of {short}", "NaN", "must be finite"),),
        )
    # What cancels in the softmax leaves rounding behind.
    if gradient is None or not np.abs(gradient).max() > 1e-7 * largest:
        return fails(
            "RG701",
            f"{what} `{short}` gets no gradient",
            about=short,
            measured=(Measurement(f"gradient of {short}", "none", "must not be 0"),),
            hidden="the forward result has the right shape; this part never learns",
        )
    if whole or gradient.ndim < 2:
        return None
    dead = np.abs(gradient) <= 1e-10 * np.abs(gradient).max()
    share = float(dead.mean())
    if share >= 0.2:
        return fails(
            "RG701",
            f"{share:.0%} of {what} `{short}` gets no gradient",
            about=short,
            measured=(Measurement(f"entries of {short} at 0", f"{share:.0%}", "must be 0%"),),
            hidden="the forward result has the right shape; this part never learns",
        )
    return None


def _tables(module: Any) -> set[str]:
    """Names of embedding tables, of which a call uses some rows only."""
    if module is None:
        return set()
    found = set()
    for name, part in module.named_modules():
        if type(part).__name__ in ("Embedding", "EmbeddingBag"):
            found |= {f"{name}.{p}" if name else p for p, _ in part.named_parameters()}
    # A bare table of positions is longer than the sequence.
    for name, parameter in module.named_parameters():
        if parameter.dim() >= 2 and 64 in parameter.shape:
            found.add(name)
    return found


def _entries_matter(bench: Bench, here: Layout) -> Verdict | None:
    names = [n for n in bench.probe.floats() if here.is_learned(n)]
    names = [n for n in names if n not in ("b", "b_a", "bias")]
    for name in names:
        value = bench.probe.args[name]
        rng = np.random.default_rng(3)
        for _ in range(2):
            index = tuple(int(rng.integers(n)) for n in value.shape)
            fresh = value.copy()
            fresh[index] += 2.0
            out = bench.ok(**{name: fresh})
            if out is not None and not moved(here, Answer(here, out, slice(None))):
                return fails(
                    "RG701",
                    f"entry {index} of `{name}` changes no result",
                    about=name,
                    measured=(Measurement("largest change of a result", "0", "must not be 0"),),
                    hidden="the result has the right shape; part of the array is not read",
                )
    return holds() if names else None


def _pieces(here: Layout, name: str) -> list[tuple[dict[str, Any], str]]:
    """The parts of an argument that each must matter: all of it, and halves of its features."""
    pieces: list[tuple[dict[str, Any], str]] = [({}, f"argument `{name}`")]
    axes = here.inputs[name]
    if here.contract.kinds.get(name) in ("weights", "zero_padded"):
        return pieces
    if here.is_table(name):
        at = next(i for i, n in enumerate(axes.names) if n in (*here.keys, *here.queries))
        along, last = axes.names[at], axes.shape[at] - 1
        ends = ((0, "first"), (last, "last"))
        return [*pieces, *(({along: i}, f"the {which} row of `{name}`") for i, which in ends)]
    if here.is_learned(name):
        return pieces
    layered = set(axes.names) & {"layers", "dirs"}
    for i, axis in enumerate(axes.names):
        size = axes.shape[i]
        if axis.startswith("d_") and size >= 4 and not layered:
            pieces += [
                ({axis: slice(0, size // 2)}, f"the first half of `{name}` along {axis}"),
                ({axis: slice(size // 2, size)}, f"the second half of `{name}` along {axis}"),
            ]
        elif axis in ("heads", "kv_heads") and size > 1:
            pieces += [({axis: h}, f"{axis} {h} of `{name}`") for h in (0, size - 1)]
    return pieces


def moved(here: Layout, answer: Answer, *, contexts: bool = False) -> bool:
    """Whether any result, or any context where there is one, differs from the plain run's."""
    only = [n for n in here.contexts() if here.context(here.bench.out, n) is not None]
    for name in only if contexts and only else here.contract.out_names:
        is_weights = name == here.contract.weights
        a = here.alignment(here.bench.out) if is_weights else here.context(here.bench.out, name)
        b = answer.get(name)
        if a is None or b is None or a.shape != b.shape:
            continue
        finite = np.isfinite(a) & np.isfinite(b)
        if (np.isfinite(a) != np.isfinite(b)).any():
            return True
        if finite.any() and np.abs(a[finite] - b[finite]).max() > 1e-6:
            return True
    return False
