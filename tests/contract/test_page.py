import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "contract_vs_peers.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository")


def _script():
    spec = importlib.util.spec_from_file_location("contract_vs_peers", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_the_page_is_what_the_committed_results_say():
    script = _script()
    assert script.PAGE.read_text() == script.page(json.loads(script.RESULTS.read_text()))


def test_regard_breaks_nothing():
    peers = json.loads(_script().RESULTS.read_text())["peers"]
    broken = {
        peer["name"]: {
            verdict["clause"] for verdict in peer["verdicts"] if verdict["outcome"] == "broken"
        }
        for peer in peers
        if peer["package"] == "regard"
    }
    assert len(broken) >= 9
    assert not {name: clauses for name, clauses in broken.items() if clauses}


def test_a_row_has_verdicts_exactly_if_its_package_was_installed():
    for peer in json.loads(_script().RESULTS.read_text())["peers"]:
        assert peer["installed"] == ("verdicts" in peer)
