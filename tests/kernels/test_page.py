"""The page about kernels: it says what the results say."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "additive_page.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("additive_page", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def _results():
    rows = [
        {
            **{
                "size": "S1",
                "variant": "eager torch",
                "forward_ms": 40.0,
                "forward_ratio": 1.0,
            },
            **{"numpy_ratio": 0.5, "train_ms": 80.0, "train_ratio": 1.0},
            **{"error": 2e-7, "gradient_error": 3e-7},
        },
        {
            **{"size": "S1", "variant": "regard native, numpy", "forward_ms": 2.0},
            **{"forward_ratio": 20.0, "numpy_ratio": 10.0, "error": 4e-7},
        },
        {"size": "S1", "variant": "JoeyNMT", "reason": "JoeyNMT is not installed"},
    ]
    return {
        **{"command": "python benchmarks/additive.py", "date": "2000-01-01", "python": "3.11"},
        **{"torch": "2.13", "processor": "some processor", "backend": "native", "repeats": 7},
        "sizes": {"S1": [8, 64, 64, 256]},
        "allocators": {
            "default": {
                **{"rows": rows, "scaling": {}},
                "register_limit": {"scores": 20.0, "gradients": 8.0},
                "kernel": {"S1": {"scores": 15.0, "gradients": 6.0}},
            }
        },
        "load_average": 0.25,
        "memory": {"S1, trained": {"eager torch": 99.25, "regard native, torch": 5.5}},
        "two_threads": {
            **{"size": "S2", "load_average": 0.5, "processors": 2},
            **{
                what: {"one_ms": 18.0, "two_ms": 10.0, "ratio": 1.8}
                for what in ("scores", "gradients")
            },
        },
    }


def test_the_page_shows_each_figure_and_why_one_is_missing(script):
    lines = script.page(_results()).splitlines()
    assert "| eager torch | 40.00 | 1.0 | 0.5 | 80.00 | 1.0 | 2e-07 | 3e-07 |" in lines
    assert "| regard native, numpy | 2.00 | 20.0 | 10.0 |  |  | 4e-07 |  |" in lines
    assert "| JoeyNMT | JoeyNMT is not installed | | | | | | |" in lines
    # 15 is three quarters of 20, and so is 6 of 8.
    assert "| S1 | 15.0 | 75 % | 6.0 | 75 % |" in lines
    assert "| S1, trained | 99.2 | 5.5 |" in lines
    assert "| gradients | 18.0 | 10.0 | 1.80 |" in lines
    assert "under a load of 0.5" in script.page(_results())


def _decoder():
    row = {
        "batch": 64,
        "T": 50,
        "d": 256,
        "d_attn": 31,
        "tutorial_ms": 800.0,
        "regard_ms": 200.0,
    }
    step = {"batch": 64, "T": 50, "d": 256, "eager_us": 900.0, "regard_us": 300.0}
    return {
        **{"command": "python benchmarks/decoder.py", "date": "2000-01-01"},
        "load_average": 0.75,
        "allocators": {
            "default": {
                "rows": [{**row, "products_ms": 100.0, "ratio": 4.0, "most": 8.0}],
                "steps": [{**step, "reading_us": 150.0, "ratio": 3.0, "most": 6.0}],
            }
        },
    }


def test_the_part_about_decoders_shows_the_ratio_and_what_it_can_be_at_most(script):
    lines = script.page(_results(), _decoder()).splitlines()
    assert "| default | 64 | 50 | 256 | 31 | 800.0 | 200.0 | 100.0 | 4.0 | 8.0 |" in lines
    assert "| default | 64 | 50 | 256 | 900 | 300 | 150 | 3.0 | 6.0 |" in lines
    assert "One decoding step" not in script.page(_results())


def test_a_limit_that_could_not_be_measured_is_said_so(script):
    results = _results()
    results["allocators"]["default"]["register_limit"] = "no C++ compiler was found"
    assert "Not measured: no C++ compiler was found." in script.page(results)


@pytest.mark.parametrize("missing", ["memory", "two_threads"])
def test_what_a_system_cannot_tell_is_said_to_be_not_measured(script, missing):
    results = _results()
    results[missing] = {}
    assert "Not measured." in script.page(results)
    assert "Not measured" not in script.page(_results())


def test_the_check_notices_a_page_that_is_not_the_results(script, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["additive_page.py", "--check"])
    for name in ("RESULTS", "DECODER", "PAGE", "FIGURE"):
        monkeypatch.setattr(script, name, tmp_path / name)
    assert script.main() == 0  # nothing was measured, nothing is claimed
    script.RESULTS.write_text(json.dumps(_results()), encoding="utf-8")
    assert script.main() == 1
    script.PAGE.write_text(script.page(_results()), encoding="utf-8")
    assert script.main() == 0
    script.DECODER.write_text(json.dumps(_decoder()), encoding="utf-8")
    assert script.main() == 1
    script.DECODER.unlink()
    script.RESULTS.unlink()
    assert script.main() == 1


def test_the_committed_page_is_what_the_committed_results_say(script):
    if not script.RESULTS.exists():
        pytest.skip("no results are committed yet")
    results, decoder = (
        json.loads(path.read_text()) if path.exists() else None
        for path in (script.RESULTS, script.DECODER)
    )
    assert script.PAGE.read_text() == script.page(results, decoder)
