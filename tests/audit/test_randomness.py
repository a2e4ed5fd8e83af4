"""Two equal calls that differ: what is found behind it, in PyTorch and without."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from regard.audit.capture import check_capture
from regard.audit.from_torch import from_torch
from regard.audit.planted import planted_inputs
from regard.audit.protocol import FunctionCase
from regard.audit.reach import modules_of, parameters_with_nan

_INPUTS = planted_inputs(23, seed=7)


class Pooled(nn.Module):
    """Weighted embeddings; dropout as a module, in an LSTM or as a function."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(3)
        self.kind = kind
        self.embed = nn.Embedding(97, 7)
        self.rnn = nn.LSTM(7, 7, num_layers=2, dropout=0.25, batch_first=True)
        self.score, self.out = nn.Linear(7, 1), nn.Linear(7, 2)
        self.drop, self.softmax = nn.Dropout(0.5), nn.Softmax(dim=-1)

    def forward(self, ids):
        x = self.embed(ids)
        if self.kind == "lstm":
            x = self.rnn(x)[0]
        scores = self.score(x).squeeze(-1).masked_fill(ids == 0, -1e9)
        weights = self.softmax(self.drop(scores) if self.kind == "module" else scores)
        if self.kind == "function":
            weights = functional.dropout(weights, 0.5)
        return self.out((weights.unsqueeze(-1) * x).sum(1)), weights


def _ids(texts):
    longest = max(map(len, texts))
    rows = [[1 + sum(map(ord, word)) % 96 for word in text] for text in texts]
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def _functions(model):
    def run(texts):
        with torch.no_grad():
            return model(_ids(texts))

    return FunctionCase(
        lambda texts: run(texts)[0].softmax(-1),
        lambda texts: [row[: len(t)] for t, row in zip(texts, run(texts)[1], strict=True)],
    )


def _said(case):
    gate = check_capture(case, _INPUTS)[-1]
    assert (gate.name, gate.outcome) == ("G0.twice", "failed")
    return gate.said


def test_a_dropout_in_training_mode_is_named_with_its_rate():
    said = _said(_functions(Pooled("module").train()))
    assert "`drop` (Dropout, dropout 0.5)" in said
    assert " in `drop`" in said.partition("random operations ran: ")[2]
    assert "with PyTorch's generator seeded alike before each call they are equal" in said
    assert "model.eval() belongs before" in said


def test_dropout_between_the_layers_of_an_lstm_is_named():
    said = _said(_functions(Pooled("lstm").train()))
    assert "`rnn` (LSTM, dropout 0.25)" in said
    assert " in `rnn`" in said.partition("random operations ran: ")[2]


def test_a_functional_dropout_is_found_although_every_module_is_in_evaluation_mode():
    said = _said(_functions(Pooled("function").eval()))
    assert "every module found is in evaluation mode" in said
    assert "random operations ran: " in said
    assert "a functional dropout needs training=self.training" in said
    assert "in training mode" not in said


def test_a_module_that_was_put_back_into_training_mode_is_found_behind_from_torch():
    case = from_torch(Pooled("module"), _ids, "softmax", answer=lambda found: found[0])
    assert {gate.outcome for gate in check_capture(case, _INPUTS)} <= {"passed"}
    case.module.train()
    assert "`drop` (Dropout, dropout 0.5)" in _said(case)


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (np.random.rand, "NumPy's own generator"),
        (random.random, "Python's `random`"),
    ],
)
def test_a_common_generator_without_a_model_is_named(draw, named):
    def weights(texts):
        return [np.array([draw() + 1e-3 for _ in text]) for text in texts]

    case = FunctionCase(lambda texts: np.tile([0.5, 0.5], (len(texts), 1)), weights)
    assert f"with {named} seeded alike" in _said(case)


def test_a_generator_of_the_cases_own_leaves_the_common_ones_as_they_were():
    own = np.random.default_rng(11)

    def states():
        return np.random.get_state()[1].tolist(), random.getstate(), torch.get_rng_state()  # noqa: NPY002

    case = FunctionCase(
        lambda texts: np.tile([0.5, 0.5], (len(texts), 1)),
        lambda texts: [own.dirichlet(np.ones(len(text))) for text in texts],
    )
    before = states()
    assert "draws from one of its own" in _said(case)
    after = states()
    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])


def test_modules_are_found_in_methods_globals_and_what_functions_enclose():
    model = Pooled("module")

    class Served:
        def __init__(self):
            self.kept = {"model": model}

        def predict(self, texts):
            return texts

    assert "drop" in modules_of(FunctionCase(Served().predict, len))
    assert "drop" in modules_of(FunctionCase(lambda texts: model, len))
    assert not modules_of(FunctionCase(len, len))


def test_parameters_that_hold_nan_are_named():
    model = Pooled("module").eval()
    with torch.no_grad():
        model.score.weight[0, 2] = float("nan")
    assert parameters_with_nan(_functions(model)) == ["score.weight"]
    said = check_capture(_functions(model), _INPUTS)[-1].said
    assert said.startswith("weights hold NaN: in 23 of 23 inputs, first at token 0, ")
    assert said.endswith("parameters with NaN: score.weight")
