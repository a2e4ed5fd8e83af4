"""Every kind of page that regard writes, held to axe-core: light and wide, dark and narrow."""

import json
import random

import pytest

from browser import AXE, CHROMIUM, WHY, WHY_NOT_AXE, Browser
from regard.cli.main import run

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=WHY),
    pytest.mark.skipif(AXE is None, reason=WHY_NOT_AXE),
]

BROKEN = """
import numpy as np

def attention(query, keys):
    '''query (batch, d), keys (batch, T, d).'''
    scores = np.einsum('bd,btd->bt', query, keys)
    weights = np.exp(scores) / np.exp(scores).sum(axis=0)
    return np.einsum('bt,btd->bd', weights, keys), weights
"""
CASE = """
import math
import regard.audit as ra

WORTH = {"good": 2.0, "bad": -2.0}

def weights(batch):
    rows = [[math.exp(abs(WORTH.get(token, 0))) for token in tokens] for tokens in batch]
    return [[one / sum(row) for one in row] for row in rows]

def predict(batch):
    found = []
    for row, tokens in zip(weights(batch), batch):
        z = sum(a * WORTH.get(token, 0.0) for a, token in zip(row, tokens))
        found.append([1 / (1 + math.exp(z)), 1 / (1 + math.exp(-z))])
    return found

case = ra.FunctionCase(predict, weights)
"""


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


def checked(folder, capsys):
    (folder / "broken.py").write_text(BROKEN)
    assert run(["check", str(folder / "broken.py:attention"), "--format", "html"]) == 1
    (folder / "page.html").write_text(capsys.readouterr().out, encoding="utf-8")


def audited(folder, capsys):
    (folder / "model.py").write_text(CASE)
    draw = random.Random(0)
    words = ["a", "film", "was", "it", "of"]
    lines = [
        {"tokens": [*draw.sample(words, 3), draw.choice(["good", "bad"])]} for _ in range(23)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["audit", f"{folder / 'model.py'}:case", "--data", str(folder / "in.jsonl")]
    assert run([*arguments, "--out", str(folder / "page.html")]) in {0, 1, 2}


@pytest.mark.parametrize("make", [checked, audited])
def test_a_report_has_no_serious_fault_and_fits_its_window(browser, make, tmp_path, capsys):
    make(tmp_path, capsys)
    browser.hold(tmp_path / "page.html")


def test_no_lesson_has_a_serious_fault(browser, tmp_path):
    from regard.learn.site import pages

    for name, html in pages():
        (tmp_path / name).write_text(html, encoding="utf-8")
        browser.hold(tmp_path / name)
