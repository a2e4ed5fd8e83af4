"""Word aligners on two small corpora with gold links, in one run: AER, intervals, CPU seconds.

    python benchmarks/alignment_error.py --data DIR [--json FILE] [--only NAME ...]

DIR holds the corpora, which have no licence that would let them ship:

hansards-mini/    {train,dev,test}.{en,fr}, {dev,test}.align.txt: English-French parliament,
                  from Berkeley's aligner (resources/example there). Gold is French-English.
en-es-europarl/   corpus.{en,es}, dev.{en,es}, dev.key: English-Spanish, a course's homework.

Every system is trained on all text, in lower case, the text with gold links included and their
gold unseen. How its links are read (one direction or a symmetrisation; for regard also the
threshold) is chosen on some pairs with gold, 37 of the Hansards' and the first 50 of
Europarl's, and the figures are of the others, with bootstrap intervals over sentences. For
regard the row with its own defaults stands beside it.

A system that is in FILE already is not run again, so that a run can be stopped. The peers are
eflomal and thot: ``pip install eflomal sil-thot`` (GPL-3 and LGPL-3); a system that is not
installed is shown with the reason. ``docs/alignment_page.py`` makes the page's tables of FILE.
"""

import argparse
import dataclasses
import json
import os
import platform
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - threads are counted when it loads
import torch  # noqa: E402

from regard.aligner.bitext import Bitext, Words  # noqa: E402
from regard.aligner.corpus import SentencePairs  # noqa: E402
from regard.aligner.links import LEAST, links_of  # noqa: E402
from regard.aligner.model import Aligner, Believed  # noqa: E402
from regard.aligner.settings import AlignerSettings  # noqa: E402
from regard.aligner.train import train_aligner  # noqa: E402
from regard.alignment.link_files import read_links  # noqa: E402
from regard.alignment.links import Gold, Links  # noqa: E402
from regard.alignment.score import AlignmentScore, difference, score_alignments  # noqa: E402
from regard.alignment.symmetrize import symmetrize  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SYMMETRISED = ("intersection", "grow-diag", "grow-diag-final-and")
THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6)
SEEDS = (0, 1, 2)

Readings = dict[str, list[Links]]
"""Links of every pair with gold, for each way of reading them."""


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Text, of which the first pairs have gold links."""

    pairs: SentencePairs
    gold: tuple[Gold, ...]
    chosen_on: int

    @property
    def sentences(self) -> list[tuple[list[str], list[str]]]:
        """Both sides in lower case."""
        both = zip(self.pairs.source, self.pairs.target, strict=True)
        return [([w.lower() for w in s], [w.lower() for w in t]) for s, t in both]


def hansards(data: Path) -> Corpus:
    """Read the Hansards: 37 pairs to choose on, 447 to report, 2,383 without gold."""
    place = data / "hansards-mini"
    sides = [
        [line for part in ("dev", "test", "train") for line in _lines(place / f"{part}.{side}")]
        for side in ("en", "fr")
    ]
    files = [
        read_links(place / f"{part}.align.txt", base=0, target_first=True)
        for part in ("dev", "test")
    ]
    gold = files[0].sentences + files[1].sentences
    return Corpus(SentencePairs(*sides, "hansards-mini"), gold, len(files[0].sentences))


def europarl(data: Path) -> Corpus:
    """Read English-Spanish Europarl: 50 pairs to choose on, 150 to report, 5,401 without."""
    place = data / "en-es-europarl"
    sides = [
        [line for part in ("dev", "corpus") for line in _lines(place / f"{part}.{side}")]
        for side in ("en", "es")
    ]
    gold = read_links(place / "dev.key", format="naacl", base=1).sentences
    return Corpus(SentencePairs(*sides, "en-es-europarl"), gold, 50)


CORPORA: dict[str, Callable[[Path], Corpus]] = {
    "hansards-mini": hansards,
    "en-es-europarl": europarl,
}


def diagonal(corpus: Corpus) -> Readings:
    """Link every target word to the place that is as far into the source."""
    found = []
    for s, t in corpus.pairs.sizes[: len(corpus.gold)]:
        found.append(frozenset((int((j + 0.5) * s / t), j) for j in range(t)))
    return {"forward": found}


def ours(**settings: Any) -> Callable[[Corpus], Readings]:
    """Train regard's aligner and read its links in every way."""

    def run(corpus: Corpus) -> Readings:
        trained = train_aligner(corpus.pairs, AlignerSettings(**settings))
        return _read(corpus, dict(trained.believe(corpus.pairs)))

    return run


def unchained(corpus: Corpus) -> Readings:
    """Train regard's aligner with every word choosing for itself, to the end."""
    settings = AlignerSettings()
    aligner = Aligner(Bitext(corpus.pairs, Words(), Words()), settings)
    for epoch in range(settings.epochs):
        aligner.learn(epoch, chain=False)
    return _read(corpus, dict(aligner.believe(chain=False)))


def _read(corpus: Corpus, believed: dict[int, Believed]) -> Readings:
    with_gold = [believed[place] for place in range(len(corpus.gold))]
    ways = {f"agreeing from {least}": ("agreeing", least) for least in THRESHOLDS} | {
        name: (name, LEAST) for name in ("forward", "backward", *SYMMETRISED)
    }
    return {
        name: [links_of(one, method, least) for one in with_gold]
        for name, (method, least) in ways.items()
    }


def eflomal(corpus: Corpus, prefix: int = 0) -> Readings:
    """Run eflomal's Bayesian model with fertility (its model 3, the default)."""
    import eflomal as peer  # noqa: PLC0415 - where it is installed

    both = corpus.sentences
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{name}" for name in ("forward", "backward")]
        aligner = peer.Aligner(source_prefix_len=prefix, target_prefix_len=prefix)
        aligner.align(
            [" ".join(s) + "\n" for s, _ in both],
            [" ".join(t) + "\n" for _, t in both],
            links_filename_fwd=names[0],
            links_filename_rev=names[1],
        )
        sides = [read_links(name, base=0).links()[: len(corpus.gold)] for name in names]
    return _combined(*sides)


def thot(model: str) -> Callable[[Corpus], Readings]:
    """Train one of thot's models, five rounds in each direction, with its defaults."""

    def run(corpus: Corpus) -> Readings:
        import thot.common  # noqa: F401, PLC0415 - the type of what it returns
        from thot import alignment as peer  # noqa: PLC0415 - where it is installed

        sides = []
        for turned in (False, True):
            both = [(t, s) if turned else (s, t) for s, t in corpus.sentences]
            first = peer.FastAlignModel if model == "fast_align" else peer.Ibm1AlignmentModel
            trained = _trained(first(), both)
            if model == "HMM":  # begins with what IBM 1 has learned
                trained = _trained(peer.HmmAlignmentModel(trained), both)
            found = []
            for s, t in both[: len(corpus.gold)]:
                rows = trained.get_best_alignment(s, t)[1].to_numpy()
                links = {(int(i), int(j)) for i, j in zip(*rows.nonzero(), strict=True)}
                found.append(frozenset((j, i) if turned else (i, j) for i, j in links))
            sides.append(found)
        return _combined(*sides)

    return run


def _trained(model: Any, both: Sequence[tuple[list[str], list[str]]]) -> Any:
    for s, t in both:
        if s and t:
            model.add_sentence_pair(s, t, 1)
    model.start_training()
    for _ in range(5):
        model.train()
    model.end_training()
    return model


def _combined(forward: Sequence[Links], backward: Sequence[Links]) -> Readings:
    pairs = list(zip(forward, backward, strict=True))
    one_way = {"forward": list(forward), "backward": list(backward)}
    return one_way | {way: [symmetrize(f, b, way) for f, b in pairs] for way in SYMMETRISED}


SYSTEMS: dict[str, Callable[[Corpus], Readings]] = {
    "diagonal": diagonal,
    "regard": ours(seed=0),
    "eflomal": eflomal,
    "fast_align (thot)": thot("fast_align"),
    "IBM 1 (thot)": thot("IBM 1"),
    "regard, seed 1": ours(seed=1),
    "regard, seed 2": ours(seed=2),
    "regard, no agreement": ours(agree=False),
    "regard, no spelling": ours(spelling=0.0),
    "regard, no chain": unchained,
    "eflomal, prefixes of 5": lambda corpus: eflomal(corpus, prefix=5),
    "HMM (thot)": thot("HMM"),
}
"""In the order in which they are run: what matters most first."""


def measured(corpus: Corpus, run: Callable[[Corpus], Readings]) -> dict[str, Any]:
    """Run a system; return its figures for every reading, and which one is chosen."""
    began = _cpu()
    try:
        readings = run(corpus)
    except ImportError as error:
        return {"reason": f"not installed ({error.name})"}
    seconds = _cpu() - began
    at = corpus.chosen_on
    rows = {}
    for name, links in readings.items():
        chosen_on = score_alignments(corpus.gold[:at], links[:at])
        score = score_alignments(corpus.gold[at:], links[at:])
        interval = score.interval()
        rows[name] = {
            "aer_chosen_on": chosen_on.aer,
            "aer": score.aer,
            "low": interval.low,
            "high": interval.high,
            "precision": score.precision,
            "recall": score.recall,
            "links": score.links,
        }
    best = min(rows, key=lambda name: rows[name]["aer_chosen_on"])
    counts = score_alignments(corpus.gold[at:], readings[best][at:]).counts.tolist()
    text = ";".join(" ".join(map(str, row)) for row in counts)
    return {"cpu_seconds": seconds, "chosen": best, "readings": rows, "counts": text}


def compared(systems: dict[str, Any]) -> None:
    """Note how far each system's AER is above regard's, with a paired bootstrap interval."""
    scores = {
        name: AlignmentScore(
            np.array([row.split() for row in found["counts"].split(";")], dtype=np.int64)
        )
        for name, found in systems.items()
        if "counts" in found
    }
    if "regard" in scores:
        for name, score in scores.items():
            interval = difference(score, scores["regard"])
            systems[name]["above_regard"] = [
                score.aer - scores["regard"].aer,
                interval.low,
                interval.high,
            ]


def _cpu() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _lines(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8")
    return [re.sub(r"</?s\b[^>]*>", " ", line).split() for line in text.splitlines()]


def main() -> int:
    """Measure, and write what was found after each system."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", type=Path, default=ROOT / "docs/results/alignment.json")
    parser.add_argument("--only", nargs="*", choices=[*SYSTEMS, *CORPORA], default=[])
    given = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {}
    if given.json.exists():
        results = json.loads(given.json.read_text(encoding="utf-8"))
    for name, read in CORPORA.items():
        if set(given.only) & set(CORPORA) and name not in given.only:
            continue
        corpus = read(given.data)
        entry = results.setdefault("corpora", {}).setdefault(name, {"systems": {}})
        entry |= {
            "pairs": len(corpus.pairs),
            "with_gold": len(corpus.gold),
            "chosen_on": corpus.chosen_on,
            "sha256": corpus.pairs.sha256,
        }
        for system, run in SYSTEMS.items():
            wanted = not set(given.only) & set(SYSTEMS) or system in given.only
            if not wanted or "readings" in entry["systems"].get(system, {}):
                continue
            found = measured(corpus, run)
            entry["systems"][system] = found
            compared(entry["systems"])
            results["made_by"] = {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "processor": platform.machine(),
                "defaults": AlignerSettings().to_json() | {"least": LEAST},
            }
            given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            shown = found.get("reason") or (
                f"{100 * found['readings'][found['chosen']]['aer']:.1f} {found['chosen']}, "
                f"{found['cpu_seconds']:.0f} CPU s"
            )
            print(f"{name}: {system}: {shown}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
