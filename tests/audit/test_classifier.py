"""regard's own classifiers: their equations, their training, and what they offer an audit."""

import numpy as np
import pytest
import torch

from regard.audit.capture import check_capture
from regard.audit.classifier import AttentionClassifier, ClassifierConfig
from regard.audit.classifier_training import ClassifierTraining, fit, pad, roc_auc
from regard.audit.from_classifier import (
    ClassifierCase,
    ClassifierData,
    encoded,
    train_classifier,
)
from regard.audit.inputs import Input
from regard.audit.planted import PLANTED, planted_inputs
from regard.errors import InputError


@pytest.fixture(scope="module")
def data():
    deciding = (*PLANTED[0], *PLANTED[1])
    parts = planted_inputs(500, seed=1), planted_inputs(60, seed=2), planted_inputs(90, seed=3)
    return ClassifierData(*parts, deciding=deciding)


def _config(data, **options):
    return ClassifierConfig(data.symbols, d_in=13, d_hidden=11, scale=1.0, **options)


def _untrained(data, **options):
    torch.manual_seed(5)
    model = AttentionClassifier(_config(data, **options))
    return ClassifierCase(model, data, ClassifierTraining(), name="untrained")


@pytest.mark.parametrize("encoder", ["bilstm", "bigru", "average", "embedding"])
@pytest.mark.parametrize("sentinels", [False, True])
def test_every_encoder_passes_every_check_of_capture(data, encoder, sentinels):
    case = _untrained(data, encoder=encoder, sentinels=sentinels)
    gates = check_capture(case, data.test[:23])
    assert [gate.outcome for gate in gates] == ["passed"] * 6


@pytest.mark.parametrize("score", ["tanh", "dot"])
def test_weights_are_the_softmax_of_the_published_score(data, score):
    case = _untrained(data, encoder="average", score=score, sentinels=True)
    model, one = case.model, data.test[0]
    ids, lengths = pad(data.encode([one], sentinels=True))
    with torch.no_grad():
        states = model(ids, lengths).states[0, 1:-1].double().numpy()
    if score == "tanh":
        W, b = (p.detach().double().numpy() for p in model.hidden.parameters())
        scores = np.tanh(states @ W.T + b) @ model.scored.weight[0].detach().double().numpy()
    else:
        w = model.scored.weight[0].detach().double().numpy()
        scores = states @ w / np.sqrt(states.shape[1])
    expected = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(case.weights([one])[0], expected, atol=1e-6)


def test_gradients_of_tokens_hold_the_weights(data):
    case = _untrained(data, encoder="bigru")
    one = data.test[1]
    own = case.weights([one])
    found = case.token_gradient([one])[0]
    c = int(case.predict([one])[0].argmax())
    place = 2
    values = []
    for scale in (1.01, 0.99):
        ids, lengths = pad(data.encode([one], sentinels=False))
        table = case.model.embedding.weight
        extra = torch.cat([table, table[ids[0, place]][None] * scale]).detach()
        changed = ids.clone()
        changed[0, place] = len(extra) - 1
        case.model.embedding.weight = torch.nn.Parameter(extra)
        with torch.no_grad():
            outputs = case.model(changed, lengths, torch.tensor(own[0])[None].float()).outputs
        case.model.embedding.weight = table
        last = float(outputs.double().sigmoid())
        values.append(last if c else 1 - last)
    assert found[place] == pytest.approx(abs(values[0] - values[1]) / 0.02, rel=0.02)


def test_more_than_two_classes_have_a_softmax():
    inputs = [Input(("a", str(k % 3)), label=f"c{k % 3}") for k in range(30)]
    data = ClassifierData(inputs, inputs, inputs)
    config = ClassifierConfig(data.symbols, classes=3, encoder="average", d_in=7, d_hidden=5)
    training = ClassifierTraining(epochs=25, batch=5, learning_rate=0.02)
    trained = train_classifier(data, config, training)
    assert trained.accuracy == 1.0
    assert trained.f1 is None
    assert trained.case.predict(inputs[:2]).shape == (2, 3)


def test_a_deceived_classifier_learns_the_task_and_hides_the_words(data):
    training = ClassifierTraining(epochs=4, batch=16, learning_rate=0.01, penalty=1.0)
    trained = train_classifier(data, _config(data, encoder="bigru"), training, seed=1)
    assert trained.accuracy > 0.95
    rows = trained.case.weights(data.test)
    mass = [row[list(one.gold)].sum() for row, one in zip(rows, data.test, strict=True)]
    assert np.mean(mass) < 0.02


def test_trained_with_frozen_weights_a_model_uses_them_and_says_so(data):
    case = _untrained(data, encoder="bigru")
    case.training = ClassifierTraining(epochs=1, batch=50)

    def first_token(batch):
        return [np.eye(len(one.tokens))[0] for one in batch]

    trained = case.train(attention="frozen", frozen=first_token, context=False, seed=2)
    assert trained.case.model.config.encoder == "average"
    np.testing.assert_array_equal(
        trained.case.weights(data.test[:3])[1], first_token(data.test)[1]
    )
    uniform = case.train(attention="uniform", seed=2)
    (row,) = uniform.case.weights(data.test[:1])
    np.testing.assert_allclose(row, 1 / len(row))


@pytest.mark.parametrize("patience", [0, 2])
def test_training_picks_its_lowest_loss_and_stops_without_a_better_one(data, patience):
    config = _config(data, encoder="average")
    part = encoded(data, data.train[:150], config)

    def trained(epochs):
        told = []
        model = fit(
            config,
            ClassifierTraining(epochs=epochs, batch=50, select="loss", patience=patience),
            part,
            part,
            seed=1,
            # The third epoch is the best: `told` has one entry more with every epoch.
            objective=lambda found, rows: found.outputs.mean() * 1e-6 + abs(len(told) - 3),
            progress=lambda what, done, of: told.append(done),
        )
        return model, told

    kept, told = trained(7)
    assert told == list(range(5 if patience else 7))
    for found, expected in zip(kept.parameters(), trained(3)[0].parameters(), strict=True):
        assert torch.equal(found, expected)
    assert not torch.equal(kept.readout.bias, trained(2)[0].readout.bias)


def test_rows_of_a_sparse_table_have_a_rate_of_their_own(data):
    part = encoded(data, data.train[:50], _config(data))
    config = _config(data, encoder="embedding", sparse=True)
    tables = {}
    for rate in (None, 1e-9):
        training = ClassifierTraining(epochs=1, batch=50, learning_rate=0.1, sparse_rate=rate)
        model = fit(config, training, part, part, seed=1)
        tables[rate] = model.embedding.weight.detach(), model.readout.weight.detach()
    moved = (tables[None][0] - tables[1e-9][0]).abs().amax(-1)
    seen = sorted({i for ids in part.ids for i in ids})
    # Of one step Adam's size is the rate, whatever the gradient.
    np.testing.assert_allclose(moved[seen], 0.1, rtol=1e-2)
    np.testing.assert_array_equal(tables[None][1], tables[1e-9][1])


def test_the_area_under_the_curve_counts_ordered_pairs():
    assert roc_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])) == 0.75
    assert roc_auc(np.array([1.0, 1.0]), np.array([0, 1])) == 0.5
    assert np.isnan(roc_auc(np.array([1.0, 2.0]), np.array([1, 1])))


def test_what_cannot_be_learnt_from_is_refused():
    one = Input(("a",), label="x")
    with pytest.raises(InputError, match="tokens and a label"):
        ClassifierData([one, Input(("a",))], [one], [one])
    with pytest.raises(InputError, match="at least two labels"):
        ClassifierData([one], [one], [one])
    with pytest.raises(InputError, match="`encoder` is refused"):
        ClassifierConfig(9, encoder="transformer")
    with pytest.raises(InputError, match="`penalty` is refused"):
        ClassifierTraining(penalty=-1.0)
