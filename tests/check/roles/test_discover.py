"""Attention found by reading files."""

from regard.check.roles import Candidate, Skipped, discover

ATTENTION = """
import torch

def attend(query, memory):
    weights = torch.softmax(query @ memory.mT, dim=-1)
    return weights @ memory

class Classifier(torch.nn.Module):
    def __init__(self, size, classes):
        super().__init__()
        self.fc = torch.nn.Linear(size, classes)

    def forward(self, x):
        return torch.softmax(self.fc(x), dim=-1)

def softmax(x):
    return x.exp() / x.exp().sum(-1, keepdim=True)

class Holder:
    def weights_of(self, q, k):
        return torch.softmax(q @ k.mT, -1)
"""


def test_a_classifier_is_no_attention_and_parts_of_attention_are_skipped(tmp_path):
    (tmp_path / "net.py").write_text(ATTENTION)
    found = discover(tmp_path)
    assert [f.entry for f in found if isinstance(f, Candidate)] == ["attend"]
    skipped = {f.name: f.reason for f in found if isinstance(f, Skipped)}
    assert "no forward" in skipped["Holder"]
    assert "Classifier" not in skipped


def test_nothing_is_imported_and_a_broken_file_is_named(tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit\nsoftmax = (\n")
    (found,) = discover(tmp_path)
    assert isinstance(found, Skipped)
    assert found.name == "broken.py"


def test_a_fused_call_is_attention(tmp_path):
    path = tmp_path / "fused.py"
    path.write_text(
        "import torch.nn.functional as F\n"
        "def attend(q, k, v):\n"
        "    return F.scaled_dot_product_attention(q, k, v)\n"
    )
    (found,) = discover(path)
    assert isinstance(found, Candidate)
    assert (found.entry, found.line) == ("attend", 2)
