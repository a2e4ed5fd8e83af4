"""The page of published results: what the committed results say, figures outside in bold."""

import importlib.util
from pathlib import Path

import pytest

from regard.audit.reproduce.report import Report
from regard.audit.reproduce.result import Check, Reproduction

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("audit_page", ROOT / "docs/audit_page.py")
    found = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))  # as python does for a script
        spec.loader.exec_module(found)
    return found


def test_the_committed_page_is_what_the_committed_results_say(script):
    assert script.PAGE.read_text(encoding="utf-8") == script.page()


def test_figures_outside_their_band_are_bold_and_outcomes_are_words(script):
    runs = [
        Reproduction(
            "copy",
            seed,
            (
                Check("weight", weight, 90.0, 100.0, "94.1"),
                Check("L2 granted", granted, 1.0, 1.0),
            ),
            ("A statement.",),
            seconds,
        )
        for seed, weight, granted, seconds in [(2, 95.0, 1.0, 60.0), (3, 80.5, 0.0, 240.0)]
    ]
    found = script.block("copy", Report(tuple(runs)).to_dict())
    assert "| weight | 94.1 | 90 to 100 | **87.750** | 95.000 | **80.500** |" in found
    assert "| L2 granted |  | yes | **1 of 2** | yes | **no** |" in found
    assert "2 of 4 figures lie in their bands" in found
    assert "A statement." in found
    assert "1 to 4 minutes of processor time a seed" in found
