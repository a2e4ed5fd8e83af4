import itertools
import warnings

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.model import ATTENTIONS, ModelConfig
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, PAD, UNK

SIZES = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
KINDS = {
    **{name: {"attention": name} for name in ATTENTIONS},
    "dot": {"attention": "dot", "d_s": 14},
    "local-p": {"attention": "local-p", "reach": 1.5},
    "local-m, concat": {"attention": "local-m", "score": "concat", "reach": 4.0},
    "dot, fed": {"attention": "dot", "d_s": 14, "input_feeding": True},
    "general, fed": {"attention": "general", "input_feeding": True},
}
RECURRENCES = {
    "gru": {},
    "lstm": {"cell": "lstm"},
    "lstm x 2": {"cell": "lstm", "layers": 2, "decoder_layers": 2},
}
ROWS_SUM_TO_LESS = {"local-m", "local-m, concat", "local-p", "monotonic"}
EVERY = [
    (kind, recurrence)
    for kind, recurrence in itertools.product(KINDS, RECURRENCES)
    if recurrence == "gru" or kind != "bahdanau-paper"
]


def _model(kind="bahdanau", recurrence="gru", **changes):
    sizes = SIZES | KINDS[kind] | RECURRENCES[recurrence] | changes
    model = new_model(ModelConfig(17, 19, **sizes), seed=3).eval()
    if kind == "monotonic":
        model.decoder.hard = False  # untrained, it would take no key at all
    return model


@pytest.fixture(params=EVERY, ids=" ".join)
def model(request):
    """An untrained model of each kind with each recurrence."""
    return _model(*request.param)


def test_scores_and_weights_have_their_shapes(model, batch):
    scored = model(batch.source, batch.inputs, batch.source_lengths)
    assert scored.symbol_scores.shape == (3, 4, 19)
    if model.attends:
        assert scored.weights.shape == (3, 4, 5)
        rows = scored.weights.sum(-1)
        if model.config.attention in ROWS_SUM_TO_LESS:
            assert (rows <= 1 + 1e-6).all()
            assert (rows[:, 0] > 0).all()
        else:
            torch.testing.assert_close(rows, torch.ones(3, 4))
        assert scored.weights[2, :, 1:].abs().sum() == 0
    else:
        assert scored.weights is None


def test_step_by_step_equals_all_at_once(model, batch):
    whole = model(batch.source, batch.inputs, batch.source_lengths)
    memory, state = model.start(batch.source, batch.source_lengths)
    for step in range(batch.inputs.shape[1]):
        scores, state, weights = model.step(batch.inputs[:, step], memory, state)
        torch.testing.assert_close(scores, whole.symbol_scores[:, step], rtol=1e-4, atol=1e-5)
        if model.attends:
            torch.testing.assert_close(weights, whole.weights[:, step], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_rows_taken_go_on_as_they_would_have_in_their_own_place(model, batch, steps):
    rows = torch.tensor([2, 0, 2, 1, 0])
    with torch.inference_mode():
        memory, state = model.start(batch.source, batch.source_lengths)
        for step in range(steps):
            _, state, _ = model.step(batch.inputs[:, step], memory, state)
        taken = model.take(memory, state, rows)
        for step in range(steps, 4):
            scores, state, weights = model.step(batch.inputs[:, step], memory, state)
            found, later, looked = model.step(batch.inputs[rows, step], *taken)
            taken = (taken[0], later)
            torch.testing.assert_close(found, scores[rows])
            if model.attends:
                torch.testing.assert_close(looked, weights[rows])


def test_rows_that_keep_their_sources_leave_the_memory_as_it_is(model, batch):
    twice = torch.tensor([0, 0, 1, 1, 2, 2])
    previous = torch.tensor([4, 5, 6, 7, 8, 9])
    with torch.inference_mode():
        memory, state = model.take(*model.start(batch.source, batch.source_lengths), twice)
        _, state, _ = model.step(previous, memory, state)
        swapped = torch.tensor([1, 0, 3, 3, 4, 5])
        slow = model.take(memory, state, swapped)
        fast = model.take(memory, state, swapped, same_sources=True)
        assert fast[0] is memory
        torch.testing.assert_close(
            model.step(previous, *fast)[0], model.step(previous, *slow)[0]
        )


class _TwoSteps(torch.nn.Module):
    """What a search does, with tensors at its doors only."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, previous, source, lengths):
        memory, state = self.model.start(source, lengths)
        _, state, _ = self.model.step(previous, memory, state)
        scores, _, weights = self.model.step(previous, memory, state)
        return scores if weights is None else (scores, weights)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_can_be_traced_and_then_take_sources_of_any_size(kind, batch):
    model = _model(kind, "gru" if kind == "bahdanau-paper" else "lstm x 2")
    if kind == "monotonic":  # as it is in use: one key a step
        model.decoder.hard = None
        torch.nn.init.zeros_(model.decoder.r)
    steps = _TwoSteps(model)
    given = (batch.inputs[:, 1], batch.source, batch.source_lengths)
    torch.manual_seed(5)
    others = torch.randint(4, 19, (7,)), torch.randint(4, 17, (7, 11)), torch.arange(5, 12)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing itself, and of checks of shapes
        traced = torch.jit.trace(steps, given, check_trace=False)
        torch.testing.assert_close(traced(*others), steps(*others))


@pytest.mark.parametrize("kind", ["bahdanau", "coverage", "location", "general, fed"])
def test_a_step_compiles_whole(kind, batch):
    model = _model(kind, "lstm")
    with torch.no_grad():
        memory, state = model.start(batch.source, batch.source_lengths)
        step = torch.compile(model.step, fullgraph=True, backend="eager")
        found = step(batch.inputs[:, 0], memory, state)[0]
        torch.testing.assert_close(found, model.step(batch.inputs[:, 0], memory, state)[0])


@pytest.mark.parametrize("sampling", [0.0, 0.5])
def test_half_precision_scores_as_full_precision_does_and_learns(model, batch, sampling):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.manual_seed(7)
        half = model(batch.source, batch.inputs, batch.source_lengths, sampling=sampling)
        half.symbol_scores.float().logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), name
    if not sampling:
        whole = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
        torch.testing.assert_close(half.symbol_scores.float(), whole, rtol=0, atol=0.03)


def test_a_padded_pair_is_scored_as_it_is_alone(model, batch):
    whole = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
    for row, (t_enc, t_dec) in enumerate([(5, 3), (2, 4), (1, 2)]):
        alone = model(batch.source[row : row + 1, :t_enc], batch.inputs[row : row + 1, :t_dec])
        torch.testing.assert_close(
            whole[row, :t_dec], alone.symbol_scores[0], rtol=1e-4, atol=1e-5
        )


def test_a_target_symbol_has_no_influence_on_scores_before_it(model, batch):
    before = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
    other = batch.inputs.clone()
    other[:, 2] = 17
    after = model(batch.source, other, batch.source_lengths).symbol_scores
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


def test_every_weight_gets_a_gradient(model, batch):
    model.train()
    scored = model(batch.source, batch.inputs, batch.source_lengths)
    scored.symbol_scores.logsumexp(-1).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    for embedding in (model.encoder.embedding, model.embedding):
        assert embedding.weight.grad[PAD].abs().sum() == 0


def test_the_weights_depend_on_the_seed_alone():
    sizes = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13)
    torch.manual_seed(1)
    one = new_model(sizes, seed=3).state_dict()
    torch.manual_seed(2)
    two, three = new_model(sizes, seed=3).state_dict(), new_model(sizes, seed=4).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], three[name]) for name in one)


def test_weights_bear_the_names_that_the_first_version_wrote():
    gru = {f"{part}_{side}" for part in ("weight", "bias") for side in ("ih", "hh")}
    assert set(_model().state_dict()) == {
        "encoder.embedding.weight",
        *(f"encoder.gru.{name}_l0{way}" for name in gru for way in ("", "_reverse")),
        "encoder.bridge.weight",
        "encoder.bridge.bias",
        "embedding.weight",
        *(f"decoder.attention.{name}" for name in ("W_a", "U_a", "v_a")),
        *(f"decoder.cell.{name}" for name in gru),
        "readout.weight",
        "readout.bias",
    }
    assert {name for name in _model("general").state_dict() if "decoder" in name} == {
        "decoder.W_c",
        "decoder.attention.W",
        *(f"decoder.gru.{name}_l0" for name in gru),
    }


def test_a_readout_layer_can_be_put_in_between(batch):
    scored = _model(d_readout=23)(batch.source, batch.inputs, batch.source_lengths)
    assert scored.symbol_scores.shape == (3, 4, 19)


def test_a_tied_output_layer_scores_with_the_targets_embedding(batch):
    model = _model(d_readout=5, tied=True)
    assert not any(name.startswith("readout.3") for name in model.state_dict())
    before = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
    with torch.no_grad():
        model.embedding.weight[17] *= 2  # a symbol that the batch does not read
        model.bias[4] += 3
    after = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
    others = [i for i in range(19) if i not in (4, 17)]
    assert torch.equal(after[..., others], before[..., others])
    torch.testing.assert_close(after[..., 17], 2 * before[..., 17])
    torch.testing.assert_close(after[..., 4], before[..., 4] + 3)


def _sampled(model, batch, sampling, seed=5):
    torch.manual_seed(seed)
    return model(batch.source, batch.inputs, batch.source_lengths, sampling=sampling)


def test_a_share_too_small_to_be_drawn_gives_teacher_forcings_scores(model, batch):
    whole = model(batch.source, batch.inputs, batch.source_lengths)
    sampled = _sampled(model, batch, 1e-30)
    torch.testing.assert_close(sampled.symbol_scores, whole.symbol_scores, rtol=1e-4, atol=1e-5)
    if model.attends:
        torch.testing.assert_close(sampled.weights, whole.weights, rtol=1e-4, atol=1e-5)


def test_sampling_nothing_draws_no_random_number(batch):
    model = _model()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    model(batch.source, batch.inputs, batch.source_lengths, sampling=0.0)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_is_sampled_depends_on_the_seed_alone(batch):
    model = _model()
    one, two = (_sampled(model, batch, 0.5).symbol_scores for _ in range(2))
    assert torch.equal(one, two)
    assert not torch.equal(one, _sampled(model, batch, 0.5, seed=7).symbol_scores)


def test_a_model_that_only_reads_its_own_symbols_does_not_see_the_target(batch):
    model = _model()
    one = _sampled(model, batch, 1.0)
    batch.inputs[:, 1:] = 6
    assert torch.equal(one.symbol_scores, _sampled(model, batch, 1.0).symbol_scores)
    batch.inputs[:, 0] = 6
    assert not torch.equal(one.symbol_scores, _sampled(model, batch, 1.0).symbol_scores)


def test_a_sampled_symbol_is_the_models_own_likely_one_and_never_a_reserved_one(batch):
    model = _model()
    with torch.no_grad():
        model.readout.weight.zero_()
        model.readout.bias.zero_()
        model.readout.bias[[PAD, BOS, UNK]] = 50.0
        model.readout.bias[9] = 40.0
    read = []
    model.embedding.register_forward_hook(lambda _, given, __: read.append(given[0]))
    _sampled(model, batch, 1.0)
    assert torch.equal(read[0], batch.inputs[:, 0])
    assert torch.equal(torch.stack(read[1:]), torch.full((3, 3), 9))


def test_about_the_share_that_is_asked_for_is_sampled(batch):
    model = _model()
    inputs = torch.full((512, 3), 6)
    with torch.no_grad():
        model.readout.bias[9] = 50.0
    read = []
    model.embedding.register_forward_hook(lambda _, given, __: read.append(given[0]))
    torch.manual_seed(11)
    model(batch.source[:1].expand(512, -1), inputs, sampling=0.25)
    share = (torch.stack(read[1:]) == 9).float().mean()
    assert abs(share - 0.25) < 0.05  # three and a half standard deviations


def test_sampled_training_reaches_every_weight(model, batch):
    model.train()
    _sampled(model, batch, 0.5).symbol_scores.logsumexp(-1).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("sampling", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_no_probability_is_refused(batch, sampling):
    with pytest.raises(InputError, match="`sampling` is no probability"):
        _model()(batch.source, batch.inputs, sampling=sampling)
