"""Decoders step by step: which state scores the source, and that the state is carried on."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.many import answers
from regard.check.relations.reading import weighing
from regard.check.subject import Crash

__all__ = [
    "carried_itself",
    "cell_state",
    "follows",
    "state_carried",
    "state_scores",
    "step_convention",
]


@relation("state-carried", "word t moves every later step", cost=2)
def state_carried(bench: Bench) -> Verdict | None:
    """Change single words of a recurrent decoder and watch the later steps."""
    here = layout(bench)
    found = _moves(bench, here)
    if found is None:
        return None
    name, moved = found
    n = moved.shape[0]
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    if not moved[later].all():
        missing = int((~moved & later).sum())
        return fails(
            "RG803",
            f"a word moves `{name}` of its own step only: the state is not carried to the next",
            about=name,
            measured=(Measurement("later steps that do not move", str(missing), "must be 0"),),
            depends_on=("positions",),
            hidden="every shape is right; the decoder has no memory",
        )
    if moved[np.tril(np.ones((n, n), dtype=bool), -1)].any():
        return fails(
            "RG203",
            f"a later word moves an earlier step of `{name}`",
            about=name,
            depends_on=("positions",),
        )
    if not np.diagonal(moved).any():
        return fails(
            "RG503",
            f"a word does not move `{name}` of its own step",
            level="error",
            about=name,
            depends_on=("positions",),
            hidden="every shape is right; every result is one step late",
        )
    for state in here.query_parts():
        axes = here.inputs[state]
        if axes.at(*here.queries):
            continue
        out = bench.ok(**{state: here.noised(state)})
        weights = here.alignment(out) if out is not None else None
        before = here.alignment(bench.out)
        if weights is None or before is None:
            continue
        # A cell's memory reaches the weights a step later than its state does.
        gap = np.abs(weights - before).max(axis=(1, 3)).max(axis=0)[1:]
        if gap.size and gap.min() < 1e-7:
            return fails(
                "RG803",
                f"the initial state `{state}` does not reach step {int(gap.argmin()) + 1}",
                about=state,
                depends_on=("positions",),
                hidden="every shape is right; the decoder has no memory",
            )
    return holds()


@relation("state-carried-itself", "at fixed weights, word t moves later steps", cost=2)
def carried_itself(bench: Bench) -> Verdict | None:
    """Hold the attention weights and change the first word: later steps must still move."""
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    here, plain = layout(bench), bench.trace
    words, name = _words(here), next(iter(here.contexts()), "")
    before = here.context(bench.out, name)
    if words is None or before is None or isinstance(plain, Crash) or not plain.sites:
        return None
    held = [site.weights.value for site in plain.sites]

    def hold(index: int, weights: np.ndarray) -> np.ndarray | None:
        known = held[index] if index < len(held) else None
        return known if known is not None and known.shape == weights.shape else None

    args = {**bench.probe.args, words: here.noised(words, T_dec=0)}
    other = record(bench.instance, bench.probe, bench.sizes, args=args, replace=hold)
    if isinstance(other, Crash) or other.crash is not None:
        return None
    values = tuple(None if n is None else n.value for n in other.outputs)
    after = here.context(replace(bench.out, outputs=values), name)
    if after is None or after.shape[1] < 2:
        return None
    gap = np.abs(after - before).max(axis=(0, 2))
    # A result without the state shows it in the scores of later steps alone.
    asks = _later_scores(here, plain, other)
    if asks is None:
        return None
    if gap[0] < 1e-5 or gap[1:].max() > 1e-7 or asks:
        return holds()
    return fails(
        "RG803",
        f"a word reaches later steps of `{name}` by the attention weights alone: the state "
        "is not carried to the next step",
        about=name,
        measured=(Measurement("change of later steps at fixed weights", "0", "must not be 0"),),
        depends_on=("positions",),
        hidden="every shape is right; the decoder has hardly any memory",
    )


def _later_scores(here: Layout, plain: Any, other: Any) -> bool | None:
    """Whether scores from the third step on differ between two recordings."""
    pairs = list(zip(plain.sites, other.sites, strict=False))
    if len(plain.sites) == len(other.sites) == here.n_queries:
        rows = [(a.scores.value, b.scores.value) for a, b in pairs[2:]]
    elif len(pairs) == 1:
        both = [weighing(here, s.scores, s.axis) for s in pairs[0]]
        if both[0] is None or both[1] is None or both[0].shape[2] != here.n_queries:
            return None
        rows = [(both[0][:, :, 2:], both[1][:, :, 2:])]
    else:
        return None
    gaps = [
        np.nan_to_num(np.abs(a - b)).max(initial=0.0) for a, b in rows if a.shape == b.shape
    ]
    return bool(max(gaps, default=0.0) > 1e-7)


@relation("state-of-the-step-before", "h_t = cell(x_t, h_{t-1})", strict=True, cost=1)
def cell_state(bench: Bench) -> Verdict | None:
    """Find the cell of an earlier step above the state of each cell."""
    trace = bench.trace
    if _words(layout(bench)) is None or trace is None or isinstance(trace, Crash):
        return None
    live = trace.live()
    cells = [n for n in trace.nodes if n.op.endswith("_cell") and n.index in live]
    asked = False
    for i, cell in enumerate(cells):
        own = {n.index for n in cell.inputs if n.op == "param"}
        before = {
            n.index
            for n in cells[:i]
            if own & {p.index for p in n.inputs if p.op == "param"}
            and n.inputs[0] is not cell.inputs[0]  # the other result of the same step
        }
        if not before or len(cell.inputs) < 2:
            continue
        asked = True
        state = cell.inputs[1]
        if not before & {state.index, *trace.above(state)}:
            return fails("RG803", "the state of a cell is not that of the step before")
    return holds() if asked else None


@relation("state-scores", "the state h scores the source, and not the memory c", cost=1)
def state_scores(bench: Bench) -> Verdict | None:
    """Follow the scores of each step back to the results of the LSTM before it."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or bench.contract.convention is None:
        return None
    cells = [n for n in trace.nodes if n.op == "lstm_cell"]
    memory = {n.inputs[2].index for n in cells if len(n.inputs) > 2}
    states = {n.inputs[1].index for n in cells if len(n.inputs) > 2}
    inner, asked = {n.index for n in cells}, False
    for site in trace.sites:
        near = _reached(site.scores, states | memory | inner)
        if not near & (states | memory):
            continue
        asked = True
        if near & memory and not near & states:
            return fails(
                "RG503",
                "the memory c of the LSTM scores the source; the papers' state is h",
                about=bench.contract.weights or "",
                lines=tuple(n.line for n in trace.nodes if n.index in near and n.line)[:1],
                depends_on=("convention",),
                hidden="both have one size, and both train",
            )
    return holds() if asked else None


def _reached(node: Any, ends: set[int]) -> set[int]:
    """Which of the ends lie above a node, with none of them between."""
    found, todo, seen = set[int](), [node], set[int]()
    while todo:
        one = todo.pop()
        if one.index in seen:
            continue
        seen.add(one.index)
        if one.index in ends:
            found.add(one.index)
        else:
            todo += one.inputs
    return found


@relation("weights-follow-state", "words move the weights of their step or a later one", cost=2)
def follows(bench: Bench) -> Verdict | None:
    """See that not every step scores the source with the initial state."""
    if bench.contract.score in ("pooling", "none"):
        return None
    found = _weight_moves(bench, layout(bench))
    if found is None or len(found) < 2:
        return None
    if found.any():
        return holds()
    return fails(
        "RG305",
        "no word moves the weights: every step scores the source with the same state",
        about=bench.contract.weights or "",
        measured=(Measurement("steps whose weights a word moves", "0", "must not be 0"),),
        depends_on=("positions", "score"),
        hidden="every shape is right; the decoder looks at one place all the time",
    )


@relation("step-convention", "step t scores with the declared state, s_{t-1} or s_t", cost=2)
def step_convention(bench: Bench) -> Verdict | None:
    """Find the first step whose weights a word moves: its own (s_t) or the next (s_{t-1})."""
    here = layout(bench)
    convention = bench.contract.convention
    if convention is None:
        return None
    found = _weight_moves(bench, here)
    if found is not None and not found.any():
        return None  # weights-follow-state says so
    own = _word_moves(bench, here) if found is None else np.diagonal(found)
    if own is None:
        return None
    uses_new = bool(own.all())
    if not uses_new and own.any():
        return None
    if uses_new == (convention == "luong"):
        return holds()
    is_new = "the state after the step, s_t" if uses_new else "the state before it, s_{t-1}"
    wanted = "s_t" if convention == "luong" else "s_{t-1}"
    return fails(
        "RG503",
        f"step t scores the source with {is_new}; {convention} declares {wanted}",
        about=bench.contract.weights or "",
        measured=(
            Measurement(
                "word t first moves the weights of step",
                "t" if uses_new else "t+1",
                "must be t" if convention == "luong" else "must be t+1",
            ),
        ),
        depends_on=("convention",),
        hidden="both train; only the papers differ",
    )


def _word_moves(bench: Bench, here: Layout) -> np.ndarray | None:
    """Whether the word of a single step moves the weights: [True] if it does."""
    words = [n for n in here.query_parts() if _is_word(here, n)]
    before = here.alignment(bench.out)
    if len(words) != 1 or here.queries or before is None or len(here.query_parts()) < 2:
        return None
    out = bench.ok(**{words[0]: here.noised(words[0])})
    after = here.alignment(out) if out is not None else None
    return None if after is None else np.asarray([np.abs(after - before).max() > 1e-6])


def _is_word(here: Layout, name: str) -> bool:
    is_ids = here.contract.kinds.get(name, "").startswith(("token_ids", "indices"))
    return is_ids or "d_emb" in here.inputs[name].names


def _words(here: Layout) -> str | None:
    """The argument that is read one step after the other."""
    if here.is_self or here.queries != ("T_dec",) or here.contract.positions != "recurrent":
        return None
    return next((n for n in here.query_parts() if here.inputs[n].at("T_dec")), None)


def _moves(bench: Bench, here: Layout) -> tuple[str, np.ndarray] | None:
    words, name = _words(here), next(iter(here.contexts()), None)
    if words is None or name is None:
        return None
    base = here.context(bench.out, name)
    if base is None or base.shape[1] != here.n_queries:
        return None
    moved = np.zeros((here.n_queries, here.n_queries), dtype=bool)
    variants = [{words: here.noised(words, T_dec=t)} for t in range(here.n_queries)]
    for t, answer in enumerate(answers(here, variants)):
        after = answer.get(name) if answer is not None else None
        if after is None:
            return None
        moved[t] = (np.abs(after - base).max(axis=-1) > 1e-6).all(axis=0)
    return name, moved


def _weight_moves(bench: Bench, here: Layout) -> np.ndarray | None:
    if "_weight_moves" not in bench.__dict__:
        bench.__dict__["_weight_moves"] = _weights_moved(bench, here)
    found: np.ndarray | None = bench.__dict__["_weight_moves"]
    return found


def _weights_moved(bench: Bench, here: Layout) -> np.ndarray | None:
    words = _words(here)
    if words is None:
        return None
    base = here.alignment(bench.out)
    if base is None:
        return _traced_moves(bench, here, words)
    if base.shape[2] != here.n_queries:
        return None
    moved = np.zeros((here.n_queries, here.n_queries), dtype=bool)
    variants = [{words: here.noised(words, T_dec=t)} for t in range(here.n_queries)]
    for t, answer in enumerate(answers(here, variants)):
        after = answer.get(bench.contract.weights or "") if answer is not None else None
        if after is None:
            return None
        moved[t] = np.abs(after - base).max(axis=(0, 1, 3)) > 1e-6
    return moved


def _traced_moves(bench: Bench, here: Layout, words: str) -> np.ndarray | None:
    """As above from recordings, where no weights are returned: one site a step."""
    from regard.check.trace import record  # noqa: PLC0415 - heavy

    plain = bench.trace
    n = here.n_queries
    if isinstance(plain, Crash) or plain is None or len(plain.sites) != n:
        return None
    moved = np.zeros((n, n), dtype=bool)
    for t in range(n):
        args = {**bench.probe.args, words: here.noised(words, T_dec=t)}
        other = record(bench.instance, bench.probe, bench.sizes, args=args)
        if isinstance(other, Crash) or len(other.sites) != n:
            return None
        for s, (a, b) in enumerate(zip(plain.sites, other.sites, strict=True)):
            moved[t, s] = np.abs(a.weights.value - b.weights.value).max() > 1e-6
    return moved
