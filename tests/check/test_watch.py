import contextlib
import gc
import os
import subprocess
import sys
import traceback
import weakref

import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.check.live.ledger import Ledger
from regard.errors import InputError

BATCH, T_DEC, T_ENC, D_H = 2, 3, 11, 7


def attend(query, keys):
    scores = query @ keys
    return scores.softmax(-1)


def attend_turned(query, keys):
    turned = keys.transpose(0, 1)
    scores = torch.bmm(query, turned)
    return scores.softmax(-1)


def masked(query, keys, keep):
    scores = query @ keys.transpose(1, 2)
    return scores.masked_fill(~keep, -1e9)


class Layer(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.proj = nn.Linear(hidden_size + 4, hidden_size)

    def forward(self, x):
        return self.proj(x.relu())


def attend_arrays(query, keys):
    turned = np.swapaxes(keys, 0, 1)
    return query @ turned


def refuse(query):
    raise ValueError(f"no shape {query.shape} here")


def states(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def note_on(function, *args, **sizes):
    """The note on what a call raises under watch, and the exception."""
    with pytest.raises(Exception) as caught, regard.watch(**sizes):  # noqa: PT011 - any
        function(*args)
    notes = getattr(caught.value, "__notes__", [])
    assert len(notes) <= 1
    return (notes[0] if notes else ""), caught.value


def line_of(function, offset):
    return f"{os.path.relpath(__file__)}:{function.__code__.co_firstlineno + offset}"


def test_the_note_names_operands_axes_the_clash_and_the_culprit():
    sizes = {"batch": BATCH, "T_dec": T_DEC, "T_enc": T_ENC, "d_h": D_H}
    note, _ = note_on(attend, states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H), **sizes)
    assert note == (
        f"regard: `query @ keys` ({line_of(attend, 1)} in attend)\n"
        "  operands  `query`  (batch=2, T_dec=3, d_h=7)\n"
        "            `keys`   (batch=2, T_enc=11, d_h=7)\n"
        "  clash     d_h=7, axis -1 of `query`, meets T_enc=11, axis -2 of `keys`\n"
        "  culprit   `keys`, whose T_enc=11 is its own\n"
        "            it would fit as (batch=2, d_h=7, T_enc=11)"
    )


def test_the_culprit_is_the_operand_that_was_turned_and_the_line_is_where():
    note, _ = note_on(
        attend_turned, states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H), d_h=D_H
    )
    place = line_of(attend_turned, 1)
    assert f"`turned`, whose 2 was put there at {place}: `keys.transpose(0, 1)`" in note


def test_a_mask_that_lacks_an_axis_is_the_culprit_and_not_the_scores():
    keep = torch.ones(BATCH, T_ENC, dtype=torch.bool)
    args = states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H), keep
    note, _ = note_on(masked, *args, batch=BATCH, T_dec=T_DEC, T_enc=T_ENC)
    assert "culprit   `~keep`, whose batch=2 came with `keep`" in note
    assert "it would fit as (batch=2, 1, T_enc=11)" in note


def test_scores_are_not_blamed_for_a_mask_of_other_positions():
    keep = torch.ones(BATCH, 1, T_DEC, dtype=torch.bool)
    args = states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H), keep
    note, _ = note_on(masked, *args, batch=BATCH, T_dec=T_DEC, T_enc=T_ENC)
    assert "culprit   `~keep`, whose T_dec=3 came with `keep`" in note
    assert "it would fit" not in note


def test_a_matrix_and_what_is_multiplied_with_it_are_told_with_equal_right():
    def project(source, W_k, W_v):
        keys = source @ W_k
        return keys @ W_v

    note, _ = note_on(project, states(BATCH, T_ENC, 5), states(5, 7), states(5, 7))
    assert "culprit" not in note
    assert "made      7 of `keys` came with `W_k`" in note


def test_a_layer_that_does_not_fit_is_named_by_its_attribute():
    note, _ = note_on(Layer(D_H), states(BATCH, T_DEC, D_H))
    assert "`x.relu()`          (2, 3, hidden_size=7)" in note
    assert "`self.proj.weight`  (hidden_size=7, 11)" in note
    assert (
        "hidden_size=7, axis -1 of `x.relu()`, meets 11, axis -1 of `self.proj.weight`" in note
    )


def test_sizes_are_named_by_variables_and_the_note_says_that_they_were():
    def forward(query, keys):
        batch, n_queries, hidden = query.shape
        epoch = keys.shape[1]  # a number that happens to be a size
        return query @ keys if batch * n_queries * hidden * epoch else None

    note, _ = note_on(forward, states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H))
    assert "`keys`   (batch=2, 11, hidden=7)" in note
    assert "or regard.watch(batch=2, n_queries=3, hidden=7)" in note


def test_what_is_declared_goes_before_variables():
    def forward(query, keys):
        batch = len(query)
        return batch and query @ keys

    args = states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H)
    note, _ = note_on(forward, *args, examples=BATCH)
    assert "(examples=2, 3, 7)" in note
    assert "batch" not in note.partition("clash")[0].partition("operands")[2]


def test_results_that_come_with_others_keep_where_they_were_made():
    def forward(x, y):
        best, _ = x.max(dim=1)
        return best @ y

    note, _ = note_on(forward, states(5, 11, 7), states(3, 2))
    assert "7, axis -1 of `best`, meets 3, axis -2 of `y`" in note
    assert "7 of `best` came with `x`" in note


def test_checks_that_a_library_makes_in_python_get_a_note_too():
    layer = nn.GRU(D_H, 5)
    note, error = note_on(lambda given: layer(given), states(T_DEC, BATCH, 3))  # noqa: PLW0108
    assert isinstance(error, (RuntimeError, ValueError))
    assert "`given`  (3, 2, 3)" in note


def test_a_view_that_cannot_be_filled_is_told_in_numbers():
    note, _ = note_on(lambda x: x.view(2, 3, 5), states(BATCH, T_DEC, D_H))
    assert "42 numbers do not fill (2, 3, 5), which takes 30" in note


def test_number_types_are_shown_where_they_differ():
    note, _ = note_on(lambda x, y: x @ y, states(3, 7), states(7, 5).double())
    assert "float32" in note
    assert "float64" in note


def test_numpy_failures_are_read_off_the_traceback():
    query, keys = np.ones((BATCH, T_DEC, D_H)), np.ones((BATCH, T_ENC, D_H))
    note, _ = note_on(attend_arrays, query, keys, batch=BATCH, T_enc=T_ENC, d_h=D_H)
    assert note.startswith(f"regard: `query @ turned` ({line_of(attend_arrays, 2)} in ")
    assert "`turned`  (T_enc=11, batch=2, d_h=7)" in note
    place = line_of(attend_arrays, 1)
    assert f"whose batch=2 was put there at {place}: `np.swapaxes(keys, 0, 1)`" in note


def test_the_exception_is_the_one_that_was_raised():
    args = states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H)
    with pytest.raises(RuntimeError) as plain:
        attend(*args)
    _, watched = note_on(attend, *args)
    assert type(watched) is type(plain.value)
    assert watched.args == plain.value.args
    files = [f.filename for f in traceback.extract_tb(watched.__traceback__)]
    assert not any("regard" in os.path.basename(os.path.dirname(f)) for f in files)
    assert not any(f.endswith("torch_mode.py") for f in files)


def test_an_exception_of_the_users_own_is_left_alone():
    note, error = note_on(refuse, states(2, 3))
    assert note == ""
    assert str(error) == "no shape torch.Size([2, 3]) here"


def test_an_exception_that_was_caught_inside_leaves_no_note_on_another():
    def careful(query, keys):
        with contextlib.suppress(RuntimeError):
            attend(query, keys)
        raise KeyError("other")

    note, error = note_on(careful, states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H))
    assert isinstance(error, KeyError)
    assert note == ""


def test_the_cause_of_a_wrapped_exception_bears_the_note():
    def wrapped(query, keys):
        try:
            attend(query, keys)
        except RuntimeError as error:
            raise LookupError("step 3") from error

    with pytest.raises(LookupError) as caught, regard.watch():
        wrapped(states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H))
    assert caught.value.__cause__.__notes__[0].startswith("regard: `query @ keys`")
    assert not hasattr(caught.value, "__notes__")


def test_results_gradients_and_random_numbers_are_the_same_under_watch():
    def run():
        torch.manual_seed(3)
        layer = nn.MultiheadAttention(6, 2, dropout=0.5, batch_first=True)
        x = torch.randn(BATCH, T_ENC, 6)
        out, weights = layer(x, x, x)
        out.square().sum().backward()
        return out.detach(), weights.detach(), layer.in_proj_weight.grad, torch.rand(3)

    plain = run()
    with regard.watch(report=False):
        watched = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_autocast_computes_the_same_under_watch():
    layer, x = nn.Linear(7, 5), states(3, 7)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = layer(x)
        with regard.watch():
            watched = layer(x)
    assert watched.dtype == torch.bfloat16
    assert torch.equal(plain, watched)


def test_compiled_code_runs_and_computes_the_same_under_watch():
    def weights(query, keys):
        return (query @ keys.transpose(1, 2)).softmax(-1)

    args = states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H)
    compiled = torch.compile(weights, backend="eager", fullgraph=True)
    with regard.watch():
        watched = compiled(*args)
    assert torch.equal(watched, weights(*args))


def test_a_loss_that_stretches_predictions_over_targets_is_told(capsys):
    layer, targets = nn.Linear(7, 1), states(5)
    with regard.watch(batch=5) as watch:
        loss = (layer(states(5, 7)) - targets).square().mean()
    line = loss.grad_fn is not None and line_of(
        test_a_loss_that_stretches_predictions_over_targets_is_told, 3
    )
    told = f"{line} `layer(states(5, 7)) - targets` stretches (batch=5, 1) and (batch=5,) to"
    assert watch.summary == f"1 silent broadcast: {told} (batch=5, batch=5)"
    assert capsys.readouterr().err == f"regard.watch: {watch.summary}\n"


def test_examples_that_are_lost_and_stretched_again_are_told():
    with regard.watch(report=False) as watch:
        context = states(1, T_ENC, D_H).squeeze(0)
        states(BATCH, T_ENC, D_H) + context.relu()
    assert "stretches (2, 11, 7) and (11, 7) to (2, 11, 7)" in watch.summary


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + states(D_H),
        lambda x: x.masked_fill(torch.ones(T_DEC, 1, dtype=torch.bool), 0.0),
        lambda x: x[:, :, None] + x[:, None],
        lambda x: x.unsqueeze(1) * x.unsqueeze(2),
        lambda x: x - x.mean(-1, keepdim=True),
        lambda x: x * nn.Linear(D_H, 1)(x),
        lambda x: x + nn.Embedding(T_DEC, D_H)(torch.arange(T_DEC)),
        lambda x: x + nn.Parameter(states(T_DEC, D_H)),
        lambda x: x / 3 + torch.tensor(2.0),
    ],
    ids=["bias", "mask", "pairs", "outer", "mean", "gate", "positions", "table", "numbers"],
)
def test_stretches_that_the_code_asks_for_are_not_told(run, capsys):
    with regard.watch() as watch:
        run(states(BATCH, T_DEC, D_H))
    assert watch.broadcasts == ()
    assert watch.summary == "no silent broadcast was seen"
    assert capsys.readouterr().err == ""


class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", states(31, D_H))
        self.plain = states(31, D_H)
        self.kept = {}

    def forward(self, x):
        length = x.shape[1]
        self.kept.setdefault(length, states(length, D_H))
        return x + self.table[:length].cos() + self.plain[:length] + self.kept[length].sin()


def test_tables_that_a_module_holds_are_stretched_on_purpose():
    layer = Positions()
    layer(states(BATCH, T_DEC, D_H))
    with regard.watch(report=False) as watch:
        layer(states(BATCH, T_DEC, D_H))
    assert watch.broadcasts == ()


# Another tracer, as that of coverage, keeps its place.
untraced = pytest.mark.skipif(sys.gettrace() is not None, reason="a tracer is at work")


def squared_error(predicted, targets):
    return np.mean((predicted - targets) ** 2)


class Sums:
    def __init__(self):
        self.table = np.ones((31, D_H))

    def positions(self, x):
        return x + self.table[: x.shape[1]]


@untraced
def test_an_array_that_is_stretched_silently_is_told_and_nothing_is_put_into_the_run(capsys):
    predicted, targets = np.ones((5, 1)), np.arange(5.0)
    with regard.watch(batch=5) as watch:
        loss = squared_error(predicted, targets)
    told = "`predicted - targets` stretches (batch=5, 1) and (batch=5,) to (batch=5, batch=5)"
    assert watch.summary == f"1 silent broadcast: {line_of(squared_error, 1)} {told}"
    assert capsys.readouterr().err == f"regard.watch: {watch.summary}\n"
    assert type(loss) is np.float64
    assert loss == squared_error(predicted, targets)
    assert sys.gettrace() is None


@untraced
def test_what_a_line_before_made_is_known_in_the_block_itself():
    states = np.random.default_rng(5).normal(size=(BATCH, T_ENC, D_H))
    with regard.watch(report=False) as watch:
        mean = states.mean(axis=0)
        states = states + mean
        weighed = 0.5 * np.multiply(states, mean)
    assert weighed.shape == (BATCH, T_ENC, D_H)
    assert len(watch.broadcasts) == 2
    assert "`states + mean` stretches (2, 11, 7) and (11, 7) to (2, 11, 7)" in watch.summary


@untraced
@pytest.mark.parametrize(
    "run",
    [
        lambda x: x + np.ones(D_H),
        lambda x: x[:, :, None] - x[:, None],
        lambda x: x - x.mean(-1, keepdims=True),
        lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
        lambda x: Sums().positions(x),
        lambda x: x * (np.arange(D_H) % 2),
        lambda x: x + np.zeros((T_DEC, D_H)),
        lambda x: x + (np.ones((T_DEC, D_H)) + x[0] if x.ndim == 2 else 0.0),
        lambda x: x / 3 + np.float64(2.0),
    ],
    ids=["bias", "pairs", "mean", "softmax", "table", "mask", "zeros", "branch", "numbers"],
)
def test_stretches_of_arrays_that_the_code_asks_for_are_not_told(run):
    with regard.watch(report=False) as watch:
        run(np.ones((BATCH, T_DEC, D_H)))
    assert watch.broadcasts == ()


@untraced
def test_a_line_that_raised_has_stretched_nothing():
    predicted, targets = np.ones((5, 1)), np.ones(5)
    with regard.watch(report=False) as watch, contextlib.suppress(ZeroDivisionError):
        squared_error(predicted - targets, 1 // 0)
    assert watch.broadcasts == ()


def test_another_tracer_keeps_its_place():
    before, seen = sys.gettrace(), []
    sys.settrace(lambda *event: seen.append(event))
    try:
        tracer = sys.gettrace()
        with regard.watch(report=False) as watch:
            squared_error(np.ones((5, 1)), np.ones(5))
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert watch.broadcasts == ()
    assert seen


def test_watches_nest_and_one_can_be_entered_twice():
    watch = regard.watch(report=False)
    with pytest.raises(RuntimeError) as caught, regard.watch(), watch, watch:
        attend(states(BATCH, T_DEC, D_H), states(BATCH, T_ENC, D_H))
    assert len(caught.value.__notes__) == 1
    with watch:
        states(5, 1).relu() - states(5)
    assert len(watch.broadcasts) == 1


def test_a_watch_keeps_no_tensor_alive():
    with regard.watch() as watch:
        x = states(3, 5)
        y = x.exp() @ x.T.exp()
        alive = weakref.ref(y)
        with pytest.raises(RuntimeError):
            y @ states(2, 2)
        del y
        gc.collect()
        assert alive() is None
    assert watch.broadcasts == ()


def test_what_is_long_past_is_forgotten():
    ledger = Ledger(torch.Tensor, nn.Parameter, kept=5)
    x = states(3)
    first = x
    for _ in range(20):
        made = x.exp()
        ledger.note(torch.exp, (x,), {}, made, None)
        x = made
    assert len(ledger._of) <= 5
    assert ledger.peek(id(first)) is None
    depth, record = 0, ledger.peek(id(x))
    while record.arguments:
        depth, record = depth + 1, record.arguments[0]
    assert depth <= 5


@pytest.mark.parametrize("size", [0, -3, True, 2.5, "two"])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(InputError, match=r"watch\(\): `batch` is no size"):
        regard.watch(batch=size)


def test_watching_numpy_imports_no_torch(tmp_path):
    (tmp_path / "run.py").write_text(
        "import regard, numpy as np, sys\n"
        "try:\n"
        "    with regard.watch():\n"
        "        np.ones((2, 3)) @ np.ones((2, 5))\n"
        "except ValueError as error:\n"
        "    print(error.__notes__[0].splitlines()[1])\n"
        "print('torch' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["  operands  `np.ones((2, 3))`  (2, 3)", "False"]
