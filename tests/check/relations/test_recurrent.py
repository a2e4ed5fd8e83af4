"""Decoders step by step: the state is carried on, and is what asks the source."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

pytest.importorskip("torch")

SOURCE = '''
import torch
import torch.nn as nn


class Decoder(nn.Module):
    """Scores the memory with the state before the step and feeds the context to the cell."""

    def __init__(self, emb_size, size, mem_size):
        super().__init__()
        self.W = nn.Linear(size, mem_size, bias=False)
        self.cell = nn.GRUCell(emb_size + mem_size, size)

    def forward(self, words, start, memory):
        state, states, alignment = start, [], []
        for t in range(words.size(1)):
            scores = torch.einsum("bd,btd->bt", self.W(state), memory)
            alpha = scores.softmax(dim=-1)
            context = torch.einsum("bt,btd->bd", alpha, memory)
            state = self.cell(torch.cat([words[:, t], context], dim=-1), state)
            states.append(state)
            alignment.append(alpha)
        return torch.stack(states, dim=1), torch.stack(alignment, dim=1)
'''
CONTRACT = {
    "init": {"emb_size": "d_emb", "size": "d_s", "mem_size": "d_h"},
    "inputs": {"words": "batch T_dec d_emb", "start": "batch d_s", "memory": "batch T_enc d_h"},
    "returns": [
        {"name": "states", "axes": "batch T_dec d_s"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "general",
    "positions": "recurrent",
    "convention": "bahdanau",
}


def judged(old: str = "", new: str = "") -> Results:
    assert old in SOURCE
    source = SOURCE.replace(old, new, 1) if old else SOURCE
    contract = Contract.from_mapping(CONTRACT)
    results = judge(source, "/subjects/fed.py", "Decoder", contract, strict=True, seconds=200.0)
    assert not results.broken, results.broken
    return results


def failures(results: Results) -> dict[str, str]:
    return {v.relation: v.rule for v in results.verdicts if v.state == "fails"}


def test_a_decoder_that_is_fed_its_contexts_holds_every_relation() -> None:
    results = judged()
    assert failures(results) == {}
    assert {"state-carried-itself", "step-convention", "weights-follow-state"} <= set(
        results.names
    )


def test_a_state_that_goes_on_by_the_context_alone_is_not_carried() -> None:
    found = failures(judged("dim=-1), state)", "dim=-1), start)"))
    assert found["state-carried-itself"] == "RG803"


def test_a_state_that_is_used_for_its_scores_alone_is_carried_all_the_same() -> None:
    unread = (
        "states.append(state)",
        "states.append(torch.cat([words[:, t], context], -1)[:, : state.size(-1)])",
    )
    assert "state-carried-itself" not in failures(judged(*unread))


def test_a_decoder_that_asks_with_its_first_state_at_every_step_is_found() -> None:
    found = failures(judged("self.W(state)", "self.W(start)"))
    assert found["weights-follow-state"] == "RG305"


def test_a_sum_of_cells_without_memory_is_no_repair() -> None:
    summed = "state = state + self.cell("
    assert failures(judged("state = self.cell(", summed)) == {}
    without = SOURCE.replace("state = self.cell(", summed).replace(", state)\n", ", start)\n")
    contract = Contract.from_mapping(CONTRACT)
    results = judge(
        without, "/subjects/fed.py", "Decoder", contract, strict=True, seconds=200.0
    )
    assert failures(results) == {"state-of-the-step-before": "RG803"}


LSTM = """
import torch
import torch.nn as nn


class Decoder(nn.Module):
    def __init__(self, emb_size, size, mem_size):
        super().__init__()
        self.W = nn.Linear(size, mem_size, bias=False)
        self.cell = nn.LSTMCell(emb_size + mem_size, size)

    def forward(self, words, start, memory):
        h, c, states, alignment = start, torch.zeros_like(start), [], []
        for word in words.unbind(1):
            scores = torch.einsum("bd,btd->bt", self.W(h), memory)
            alpha = scores.softmax(dim=-1)
            context = torch.einsum("bt,btd->bd", alpha, memory)
            h, c = self.cell(torch.cat([word, context], dim=-1), (h, c))
            states.append(h)
            alignment.append(alpha)
        return torch.stack(states, dim=1), torch.stack(alignment, dim=1)
"""


@pytest.mark.parametrize(("asks", "found"), [("h", {}), ("c", {"state-scores": "RG503"})])
def test_the_state_of_an_lstm_scores_and_not_its_memory(asks: str, found: dict) -> None:
    source = LSTM.replace("self.W(h)", f"self.W({asks})")
    contract = Contract.from_mapping(CONTRACT)
    results = judge(source, "/subjects/lstm.py", "Decoder", contract, seconds=200.0)
    assert not results.broken, results.broken
    named = {v.relation: v.rule for v in results.failed}
    assert found.items() <= named.items()
    assert found or not named
