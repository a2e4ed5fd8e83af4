import dataclasses

import pytest
import torch

from regard.errors import InputError, ShapeError
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import PAD


def test_scores_and_weights_have_their_shapes(model, batch):
    scored = model(batch.source, batch.inputs, batch.source_lengths)
    assert scored.symbol_scores.shape == (3, 4, 19)
    if model.attends:
        assert scored.weights.shape == (3, 4, 5)
        torch.testing.assert_close(scored.weights.sum(-1), torch.ones(3, 4))
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


def test_a_readout_layer_can_be_put_in_between(batch):
    sizes = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13, d_readout=23)
    scored = new_model(sizes, seed=3)(batch.source, batch.inputs, batch.source_lengths)
    assert scored.symbol_scores.shape == (3, 4, 19)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("attention", "location"),
        ("source_symbols", 4),
        ("target_symbols", 0),
        ("d_in", 0),
        ("d_s", -3),
        ("layers", 0),
        ("d_readout", -1),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("v_scale", 0.0),
        ("v_scale", float("nan")),
    ],
)
def test_a_value_outside_its_range_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        dataclasses.replace(ModelConfig(17, 19), **{name: value})


def test_dot_attention_refuses_states_of_two_sizes_and_says_what_fits():
    with pytest.raises(ShapeError) as caught:
        ModelConfig(17, 19, attention="dot", d_hidden=7, d_s=11)
    assert str(caught.value) == (
        "ModelConfig(): `d_s` does not fit `d_h`, which dot attention needs\n"
        "  expected  d_s = d_h = 14\n"
        "  got       d_s = 11\n"
        "  because   d_h = 14 comes from d_hidden = 7 in two directions\n"
        '  help      set d_s to 14, or use attention="general"'
    )


def test_the_json_form_gives_the_same_configuration_back():
    sizes = ModelConfig(17, 19, attention="concat", dropout=0.25, bidirectional=False)
    assert ModelConfig.from_json(sizes.to_json()) == sizes


@pytest.mark.parametrize(
    "change",
    [{"d_s": "11"}, {"d_s": True}, {"d_s": 11.0}, {"bidirectional": 1}, {"more": 1}, None],
)
def test_a_form_that_is_no_configuration_is_refused(change):
    form = ModelConfig(17, 19).to_json()
    with pytest.raises(InputError, match="ModelConfig"):
        ModelConfig.from_json(None if change is None else {**form, **change})
