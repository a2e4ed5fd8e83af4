"""Every clause can fail: attentions with one thing wrong, and one with nothing wrong."""

from functools import partial

import numpy as np
import pytest

from regard.testing import Subject, clauses, contract

CLAUSES = {clause.number: clause for clause in clauses()}


class WrongShapeError(ValueError):
    pass


def _swap(x):
    return np.swapaxes(x, -1, -2)


def _softmax(scores, may):
    if may is None:
        may = np.ones(scores.shape, dtype=bool)
    work = scores.astype(np.float32) if scores.dtype == np.float16 else scores
    peak = np.max(np.where(may, work, -np.inf), axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0)
    e = np.where(may, np.exp(np.where(may, work, peak) - peak), 0)
    total = e.sum(axis=-1, keepdims=True)
    return (e / np.where(total > 0, total, 1)).astype(scores.dtype)


def _refuse(query, key, value, mask):
    shapes = {"query": query.shape, "key": key.shape, "value": value.shape}
    for name, array in (("query", query), ("key", key), ("value", value)):
        if array.ndim != 3:
            raise WrongShapeError(f"query, key and value have 3 axes; {name} is {array.shape}")
        if array.dtype != query.dtype:
            raise WrongShapeError(f"{name} is {array.dtype}, query {query.dtype}")
    if len({shape[0] for shape in shapes.values()}) > 1 or key.shape[1] != value.shape[1]:
        raise WrongShapeError(f"batch or T_enc differ: {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise WrongShapeError(f"features differ: {shapes}")
    if mask is not None:
        wanted = (*query.shape[:2], key.shape[1])
        if mask.dtype != bool or mask.shape != wanted:
            raise WrongShapeError(f"mask is {mask.dtype} {mask.shape}, not bool {wanted}")


def honest(
    query,
    key,
    value,
    mask=None,
    need_weights=True,
    *,
    check=_refuse,
    before=lambda q, k, v: (q, k, v),
    clear=True,
    score=lambda q, k: q @ _swap(k),
    normalise=_softmax,
    after=lambda context, weights: (context, weights),
):
    check(query, key, value, mask)
    query, key, value = before(query, key, value)
    if mask is not None and clear:
        used = mask.any(axis=1)[..., None]
        key, value = np.where(used, key, 0), np.where(used, value, 0)
    weights = normalise(score(query, key), mask)
    context, weights = after(weights @ value, weights)
    return (context, weights if need_weights else None)


def subject(call=honest, **options):
    given = {"d_s": 5, "d_h": 5, "d_v": 7, "oracle": "dot", **options}
    return Subject(call=call, **given)


def wrong(**options):
    return subject(partial(honest, **options))


def _over_queries(scores, may):
    return _swap(_softmax(_swap(scores), None if may is None else _swap(may)))


def _no_peak(scores, may):
    e = np.exp(scores) * (1 if may is None else may)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


def _sigmoid(scores, may):
    return (1 / (1 + np.exp(-scores / 1e3))) * (1 if may is None else may)


def _fill(scores, may, number=-1e9):
    return _softmax(scores if may is None else np.where(may, scores, number), None)


def _add(scores, may):
    return _softmax(scores if may is None else scores + np.where(may, 0.0, -1e9), None)


def _multiply(scores, may):
    return _softmax(scores * (1 if may is None else may), None)


def _invert(scores, may):
    return _softmax(scores, None if may is None else ~may)


def _to_nan(scores, may):
    hidden = scores if may is None else np.where(may, scores, -np.inf)
    e = np.exp(hidden - hidden.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _in_place(q, k, v):
    k *= 1.0 + 1e-3
    return q, k, v


def _written_value(q, k, v):
    v[0, 0, 0] += 1.0
    return q, k, v


def _cached():
    kept = {}

    def before(q, k, v):
        return q, kept.setdefault(k.shape, k), v  # the first keys of a shape, forever

    return before


def _one_buffer():
    kept = {}

    def after(context, weights):
        buffer = kept.setdefault(context.shape, np.empty_like(context))
        buffer[...] = context
        return buffer, weights

    return after


def _as_it_lies(q, k, v):
    return q, k.ravel(order="K").reshape(k.shape), v


def _centred(q, k, v):
    return q - q.mean(axis=0), k, v


def _by_length(q, k):
    return q @ _swap(k) / k.shape[1]


def _recent(q, k):
    return q @ _swap(k) + np.arange(k.shape[1])


def _first_matters(q, k, v):
    return q, k - k[:, :1], v * (1 + np.arange(v.shape[1])[:, None] / 100)


def _look(query, key, value, mask=None, need_weights=True):
    context, weights = honest(query, key, value, mask)
    if not need_weights:
        context = context.astype(np.float32).astype(context.dtype)  # a "faster" path
    return context, weights if need_weights else None


def _look_at_empty(query, key, value, mask=None, need_weights=True):
    context, weights = honest(query, key, value, mask)
    if mask is not None and not need_weights:
        nowhere = ~mask.any(axis=-1)
        context = np.where(nowhere[..., None], value.mean(axis=1, keepdims=True), context)
    return context, weights if need_weights else None


def _half(scores, may):
    kept = scores if may is None else np.where(may, scores, -np.inf)
    e = np.exp(kept - kept.max(axis=-1, keepdims=True))
    total = np.zeros(e.shape[:-1], dtype=e.dtype)
    for i in range(e.shape[-1]):
        total = total + e[..., i]
    return e / total[..., None]


def _unnamed(query, key, value, mask):
    try:
        _refuse(query, key, value, mask)
    except WrongShapeError as error:
        raise ValueError("shapes cannot be multiplied") from error


def _float_masks(query, key, value, mask):
    _refuse(query, key, value, None if mask is None else mask.astype(bool))


BROKEN = {
    1: {
        "softmax over the queries": wrong(normalise=_over_queries),
        "no largest score subtracted": wrong(normalise=_no_peak),
        "sigmoids that sum to anything": wrong(normalise=_sigmoid),
    },
    2: {
        "mask multiplied into the scores": wrong(normalise=_multiply),
        "mask inverted": wrong(normalise=_invert),
        "zero weight times NaN": wrong(clear=False),
        "-1e9 added, which a poisoned key outweighs": wrong(normalise=_add, clear=False),
        "-10 in the place of scores": wrong(normalise=partial(_fill, number=-1e1)),
    },
    3: {
        "-1e9 leaves such rows uniform": subject(
            partial(honest, normalise=_fill), dtypes=("float64", "float32")
        ),
        "-inf leaves such rows NaN": wrong(normalise=_to_nan),
    },
    4: {
        "another path without weights": subject(_look),
        "the mean without weights": subject(_look_at_empty),
        "one matrix for two heads": subject(heads=2),
    },
    5: {
        "keys scaled in place": wrong(before=_in_place),
        "a value written to": wrong(before=_written_value),
        "keys of the first call kept": wrong(before=_cached()),
        "results in one buffer": wrong(after=_one_buffer()),
        "numbers read as they lie in memory": wrong(before=_as_it_lies),
    },
    6: {
        "queries centred over the batch": wrong(before=_centred),
        "scores divided by the number of columns": wrong(score=_by_length),
    },
    7: {
        "later keys preferred": wrong(score=_recent),
        "the first key subtracted": wrong(before=_first_matters),
    },
    10: {
        "scaled where it should not be": wrong(score=lambda q, k: q @ _swap(k) / 5**0.5),
        "softmax in half precision": wrong(normalise=_half),
        "float32 inside": wrong(score=lambda q, k: (q @ _swap(k)).astype(np.float32)),
    },
    11: {
        "whatever NumPy broadcasts": wrong(check=lambda *_: None),
        "errors without a name": wrong(check=_unnamed),
        "masks of numbers": wrong(check=_float_masks),
    },
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("clause", clauses(), ids=str)
def test_an_honest_attention_breaks_no_clause(clause, seed):
    clause.check(subject(), seed=seed)


@pytest.mark.parametrize(
    ("number", "mutant"),
    [
        pytest.param(number, mutant, id=f"{number}-{name}")
        for number, mutants in BROKEN.items()
        for name, mutant in mutants.items()
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_clause_catches_it(number, mutant, seed):
    verdict = CLAUSES[number](mutant, seed=seed)
    assert verdict.outcome == "broken", verdict
    assert verdict.counterexample is not None


ONLY = {
    "-1e9 leaves such rows uniform": {3},
    "another path without weights": {4},
    "keys scaled in place": {5},
    "results in one buffer": {5},
    "errors without a name": {11},
    "masks of numbers": {11},
    "zero weight times NaN": {2},
}


@pytest.mark.parametrize("name", ONLY)
def test_no_other_clause_is_blamed(name):
    mutant = next(found[name] for found in BROKEN.values() if name in found)
    report = contract(mutant)
    assert {verdict.clause for verdict in report.broken} == ONLY[name], str(report)


def _heads(query, key, value, mask=None, need_weights=True, *, cut, order=(0, 1)):
    def split(x):
        return cut(x, 2)

    q, k, v = split(query), split(key), split(value)
    every = mask if mask is None else mask[:, None]
    weights = _softmax(q @ _swap(k), every)
    context = weights @ v
    joined = np.concatenate([context[:, head] for head in order], axis=-1)
    return joined, weights if need_weights else None


def _cut(x, heads):
    batch, T, d = x.shape
    return x.reshape(batch, T, heads, d // heads).transpose(0, 2, 1, 3)


def _scrambled(x, heads):
    batch, T, d = x.shape
    return x.reshape(batch, heads, T, d // heads)


def _first_twice(x, heads):
    cut = _cut(x, heads)
    return np.stack([cut[:, 0]] * heads, axis=1)


def multi(**options):
    def alone(head):
        def call(query, key, value, **passed):
            q, k, v = (_cut(x, 2)[:, head] for x in (query, key, value))
            return honest(q, k, v, check=lambda *_: None, **passed)

        return Subject(call=call, d_s=6, d_h=6, d_v=10)

    call = partial(_heads, **{"cut": _cut, **options})
    return Subject(call=call, d_s=6, d_h=6, d_v=10, heads=2, alone=alone)


def test_honest_heads_break_nothing_but_the_errors():
    assert {verdict.clause for verdict in contract(multi()).broken} <= {2, 11}
    assert CLAUSES[8](multi()).outcome == "held"


@pytest.mark.parametrize(
    "mutant",
    [multi(cut=_scrambled), multi(cut=_first_twice), multi(order=(1, 0))],
    ids=["reshaped straight", "the first head twice", "joined in the wrong order"],
)
def test_clause_8_catches_it(mutant):
    assert CLAUSES[8](mutant).outcome == "broken"
