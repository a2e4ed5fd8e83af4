"""A PyTorch module as a case: softmax parts, multi-head attention, weights caught wrongly."""

import numpy as np
import pytest
import torch
from torch import nn

from regard.audit.capture import check_capture
from regard.audit.from_torch import from_torch
from regard.audit.inputs import Input
from regard.errors import ConventionError

_WORDS = [f"w{i}" for i in range(23)]


def _ids(texts, pad_to=0):
    longest = max(pad_to, *(len(text) for text in texts))
    ids = torch.zeros(len(texts), longest, dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor([1 + _WORDS.index(word) for word in text])
    return ids


class Pooled(nn.Module):
    """Embeddings, a softmax, a linear read-out; with the usual mistakes on request."""

    def __init__(self, *, masked=True, dropped=0.0):
        super().__init__()
        torch.manual_seed(3)
        self.embed = nn.Embedding(len(_WORDS) + 1, 7)
        self.score, self.out = nn.Linear(7, 1), nn.Linear(7, 3)
        self.softmax = nn.Softmax(dim=-1)
        self.masked = masked
        self.dropped = nn.Dropout(dropped)

    def forward(self, ids):
        x = self.embed(ids)
        scores = self.score(x)[..., 0]
        if self.masked:
            scores = scores.masked_fill(ids == 0, -1e9)
        weights = self.dropped(self.softmax(scores))
        return self.out((weights[..., None] * x).sum(1))


class Heads(nn.Module):
    def __init__(self, batch_first=True):
        super().__init__()
        torch.manual_seed(5)
        self.embed = nn.Embedding(len(_WORDS) + 1, 12)
        self.attend = nn.MultiheadAttention(12, 3, batch_first=batch_first)
        self.out = nn.Linear(12, 2)
        self.batch_first = batch_first

    def forward(self, ids):
        x = self.embed(ids)
        x = x if self.batch_first else x.transpose(0, 1)
        seen = self.attend(x, x, x, key_padding_mask=ids == 0)[0]
        return self.out(seen[:, 0] if self.batch_first else seen[0])


def _inputs(count=17):
    random = np.random.default_rng(0)
    return [
        Input(tuple(random.choice(_WORDS, size=random.integers(3, 12)))) for _ in range(count)
    ]


def _outcomes(case):
    return {gate.name: gate.outcome for gate in check_capture(case, _inputs())}


def _failure(case):
    (failed,) = [gate for gate in check_capture(case, _inputs()) if gate.outcome == "failed"]
    return failed


def test_a_softmax_part_passes_every_check_of_capture():
    case = from_torch(Pooled(), _ids, "softmax", embedding="embed")
    assert set(_outcomes(case).values()) == {"passed"}


def test_replaced_weights_give_what_the_formula_gives():
    model = Pooled()
    case = from_torch(model, _ids, "softmax")
    one = _inputs(1)[0]
    given = np.random.default_rng(1).dirichlet(np.ones(len(one.tokens)))
    with torch.no_grad():
        x = model.embed(_ids([one.tokens]))[0].double().numpy()
        logits = model.out(torch.tensor(given @ x).float()).double()
    expected = logits.softmax(-1).numpy()
    np.testing.assert_allclose(case.predict_with([one], [given])[0], expected, atol=1e-6)


def test_the_gradient_is_that_of_the_predicted_class_with_the_weights_held():
    model = Pooled()
    case = from_torch(model, _ids, "softmax", embedding="embed")
    one = _inputs(1)[0]
    weights = torch.tensor(case.weights([one])[0])
    x = model.embed(_ids([one.tokens]))[0].double().detach().requires_grad_()
    logits = (weights @ x) @ model.out.weight.double().T + model.out.bias.double()
    (slope,) = torch.autograd.grad(logits.softmax(-1).max(), x)
    expected = (slope * x).sum(-1).abs().detach().numpy()
    np.testing.assert_allclose(case.token_gradient([one])[0], expected, atol=1e-6)


def test_without_an_embedding_there_is_no_gradient():
    assert not hasattr(from_torch(Pooled(), _ids, "softmax"), "token_gradient")


@pytest.mark.parametrize("batch_first", [True, False])
def test_one_head_of_multi_head_attention_passes_and_can_be_replaced(batch_first):
    case = from_torch(Heads(batch_first), _ids, "attend", head=1, row=0)
    assert set(_outcomes(case).values()) == {"passed"}
    one = _inputs(1)[0]
    turned = np.roll(case.weights([one])[0], 1)
    assert np.abs(case.predict_with([one], [turned]) - case.predict([one])).max() > 1e-4


@pytest.mark.parametrize("options", [{"head": 3, "row": 0}, {"head": 0, "row": 97}])
def test_a_head_or_row_that_is_not_there_is_refused(options):
    case = from_torch(Heads(), _ids, "attend", **options)
    with pytest.raises(ConventionError, match=r"there is no such (head|row)"):
        case.weights(_inputs(1))


def test_the_average_of_heads_is_stopped_with_that_word():
    failed = _failure(from_torch(Heads(), _ids, "attend", row=0))
    assert failed.name == "G0.heads"
    assert "averaged over 3 heads" in failed.said


def test_weights_without_a_mask_are_stopped_with_that_word():
    failed = _failure(from_torch(Pooled(masked=False), _ids, "softmax"))
    assert failed.name == "G0.sums"
    assert "padding" in failed.said
    assert "mask is missing" in failed.said


def test_weights_in_training_mode_are_stopped_with_that_word():
    case = from_torch(Pooled(dropped=0.3), _ids, "dropped")
    case.module.train()
    failed = _failure(case)
    assert failed.name == "G0.twice"
    assert "dropout" in failed.said


def test_a_part_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(ConventionError, match=r"no part 'attention'") as caught:
        from_torch(Pooled(), _ids, "attention")
    assert "softmax" in str(caught.value)


def test_which_row_is_shown_has_to_be_said():
    case = from_torch(Heads(), _ids, "attend", head=0)
    with pytest.raises(ConventionError, match="which row"):
        case.weights(_inputs(2))
