r"""The contract, asked of regard and of every peer that runs beside the same PyTorch.

Each peer is called in its own convention: its shapes, its meaning of True, its lengths. What
is not installed is shown as such. The results go to ``docs/results/contract_vs_peers.json`` and
from there to ``docs/contract.md``.

Run it in an environment of its own, made on top of one that has PyTorch and regard: peers pin
versions that PyTorch 2.13 is not, hence ``--no-deps``::

    python3 -m venv --system-site-packages PEERS
    PEERS/bin/pip install keras==3.15.1 frozendict spacy "protobuf<4" sentencepiece \
        subword-nmt rapidfuzz
    PEERS/bin/pip install --no-deps x-transformers==2.31.10 einops einx loguru \
        torch-einops-utils joeynmt==2.3.0 OpenNMT-py==3.5.1 pyonmttok configargparse \
        pyahocorasick sacrebleu flask waitress ctranslate2 tensorboard fasttext-wheel \
        allennlp-light==1.0.0 ai2-tango cached-path rjsonnet glob2 more_itertools base58 dill \
        click-help-colors pytz
    PEERS/bin/python benchmarks/contract_vs_peers.py

``--page`` rewrites the page from the committed results; ``--check`` fails where it differs.
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))
RESULTS = ROOT / "docs" / "results" / "contract_vs_peers.json"
PAGE = ROOT / "docs" / "contract.md"
COMMAND = "python benchmarks/contract_vs_peers.py"


def measure(seed: int) -> dict[str, Any]:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import torch  # noqa: PLC0415 - the page can be checked without it

    from peers.table import PEERS  # noqa: PLC0415
    from regard.testing import contract  # noqa: PLC0415

    torch.set_num_threads(1)
    rows = []
    for peer in PEERS:
        row: dict[str, Any] = {
            "name": peer.name,
            "package": peer.package,
            "called": peer.called,
            "documented": {str(number): note for number, note in peer.documented.items()},
        }
        rows.append(row)
        if importlib.util.find_spec(peer.module) is None:
            row["installed"] = False
            print(f"{peer.name}: not installed", file=sys.stderr)
            continue
        row["installed"] = True
        row["version"] = importlib.metadata.version(peer.package)
        torch.manual_seed(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers' deprecations
            report = contract(peer.make(), seed=seed)
        print(report, file=sys.stderr)
        row["verdicts"] = [
            {
                "clause": verdict.clause,
                "outcome": verdict.outcome,
                "evidence": verdict.evidence,
            }
            for verdict in report.verdicts
        ]
    return {
        "command": COMMAND,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seed": seed,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "peers": rows,
    }


_SHOWN = {"held": "yes", "broken": "**no**", "not applicable": "n/a"}


def page(results: dict[str, Any]) -> str:
    """Write the page: clauses, table, evidence, how it was made."""
    from regard.testing import clauses  # noqa: PLC0415

    peers = results["peers"]
    lines = [
        "# The contract of attention",
        "",
        "Eleven promises that regard keeps for every score, library and number type, as a test",
        "suite that runs on any attention: `regard.testing.contract(subject)`. This page is",
        "generated; the figures are those of the run named at its end.",
        "",
        "## The clauses",
        "",
    ]
    for clause in clauses():
        head, *rest = clause.statement.split("\n\n", 1)
        lines += [f"{clause.number}. {_markdown(head)}", ""]
        for each in rest:
            lines += ["    " + _markdown(each), ""]
    lines += [
        "## Who keeps what",
        "",
        "Every attention is called in its own convention, said beside its evidence. A clause",
        "that its authors never promised is asked all the same; where their documentation or",
        "source says something about it, that is noted.",
        "",
        "| attention | " + " | ".join(str(number) for number in range(1, 12)) + " |",
        "|---|" + "---|" * 11,
    ]
    for peer in peers:
        if not peer["installed"]:
            lines.append(f"| {peer['name']} | " + " | ".join(["not installed"] * 11) + " |")
            continue
        cells = [_SHOWN[verdict["outcome"]] for verdict in peer["verdicts"]]
        lines.append(f"| {peer['name']} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "yes: held. **no**: a counterexample was found, below. n/a: does not apply.",
        "",
    ]
    lines += ["## Evidence", ""]
    for peer in peers:
        version = f" {peer['version']}" if peer["installed"] else ", not installed"
        lines += [
            f"### {peer['name']}",
            "",
            f"{peer['package']}{version}. {peer['called']}",
            "",
        ]
        for verdict in peer.get("verdicts", []):
            note = peer["documented"].get(str(verdict["clause"]), "")
            said = " ".join(verdict["evidence"].split()).replace("|", "\\|")
            if verdict["outcome"] == "held" and not note:
                continue
            line = f"- {verdict['clause']} {verdict['outcome']}"
            line += f": {said}" if said else ""
            lines.append(line + (f". *Note:* {note}" if note else ""))
        if peer.get("verdicts"):
            held = sum(verdict["outcome"] == "held" for verdict in peer["verdicts"])
            lines += [*([""] if lines[-1] else []), f"{held} of 11 held.", ""]
    lines += [
        "## How this was made",
        "",
        f"`{results['command']}` on {results['date']}, seed {results['seed']}, Python "
        f"{results['python']}, PyTorch {results['torch']}, one thread. The tolerances are",
        "those of `regard.testing.tolerances`; how to install the peers is said at the top of",
        "the script.",
        "",
    ]
    return "\n".join(lines)


def _markdown(text: str) -> str:
    return re.sub(r":\w+:`", "`", " ".join(text.split()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="rewrite the page alone")
    parser.add_argument("--check", action="store_true", help="fail where the page differs")
    options = parser.parse_args()
    if not (options.page or options.check):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        measured = measure(options.seed)
        RESULTS.write_text(json.dumps(measured, indent=1, sort_keys=True) + "\n")
    text = page(json.loads(RESULTS.read_text()))
    if not options.check:
        PAGE.write_text(text)
        return 0
    if not PAGE.exists() or PAGE.read_text() != text:
        print(
            f"{PAGE.name} does not match {RESULTS.name}: run `{COMMAND} --page`",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
