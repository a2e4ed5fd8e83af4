"""Words a second: greedy and beam search of a trained model, beside g2p-en where it is.

One thread, CPU time, everything interleaved in one run, medians of the repeats. A word is what
the model reads as one source; ``word by word`` answers each alone, as a program does that has
one word at a time, the other rows answer all of them in batches of so many source symbols.

    python benchmarks/decoding.py MODEL [--pairs FILE] [--words 3000] [--json FILE]

Without ``--pairs`` the words are a fixed choice from the test part of the lexicon that ships
with regard (CMUdict, the split of the published results, without stress).

g2p-en 2.1.0 is timed if it is installed. It does not start without NLTK's ``cmudict`` corpus,
in which it looks words up first; here the corpus is replaced by an empty one, so that its
network answers every word. Two caveats about its error rates. Its network was trained on
CMUdict without a split, so it has most probably seen the test words, which a model trained on
the training part has not; and it predicts stress, which is taken off before its answers are
compared. It answers one word at a time and has no batches.
"""

import argparse
import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

import regard
from peers.g2p_en_network import g2p_en_network
from regard.seq2seq.metrics import error_rates
from regard.seq2seq.pairs import Pairs, read_pairs
from regard.seq2seq.recipes import g2p
from regard.seq2seq.search import Ranking, SearchSettings
from regard.seq2seq.transducer import Transducer

ALONE = 300
"""Words that are answered one by one: that is slow, and the rate does not need more."""

Answers = list[tuple[str, ...]]
Way = tuple[str, int, Callable[[Sequence[str]], Answers]]


def ways_of(transducer: Transducer) -> list[Way]:
    """Return what to time: a name, how many words (0 = all), and a function that answers."""

    def way(name: str, count: int = 0, batch_tokens: int = 4096, **how: Any) -> Way:
        settings = SearchSettings(**how)

        def answer(words: Sequence[str]) -> Answers:
            groups = [[word] for word in words] if count else [list(words)]
            return [
                prediction.target_symbols
                for group in groups
                for prediction in transducer.predict(
                    group, search=settings, batch_tokens=batch_tokens, need_weights=False
                )
            ]

        return name, count, answer

    return [
        way("greedy, word by word", ALONE),
        way("beam 5, word by word", ALONE, beam=5),
        way("greedy, batches of 256 symbols", batch_tokens=256),
        way("greedy, batches of 1024 symbols", batch_tokens=1024),
        way("greedy, batches of 4096 symbols"),
        way("beam 2", beam=2),
        way("beam 5", beam=5),
        way("beam 5, batches of 16384 symbols", beam=5, batch_tokens=16384),
        way("beam 5, 5 best", beam=5, nbest=5),
        way("beam 5, length penalty 0.6", beam=5, ranking=Ranking(length=0.6)),
        way("beam 10", beam=10),
        way("beam 20", beam=20),
    ]


def g2p_en() -> Way | None:
    """Return g2p-en's network as a way; None where it is not installed."""
    network = g2p_en_network()
    if network is None:
        return None

    def answer(words: Sequence[str]) -> Answers:
        return [tuple(sound.rstrip("012") for sound in network(word)) for word in words]

    return "g2p-en, word by word", 0, answer


def measure(ways: list[Way], pairs: Pairs, repeats: int) -> list[dict[str, Any]]:
    """Time all ways in turns, and score what they answered."""
    references = pairs.references()
    words = list(references)
    known = {
        word: [tuple(text.split()) for text in texts] for word, texts in references.items()
    }
    times: dict[str, list[float]] = {name: [] for name, _, _ in ways}
    answers: dict[str, Answers] = {}
    for _, _, answer in ways:
        answer(words[:20])  # what happens only once
    for _ in range(repeats):
        for name, count, answer in ways:
            asked = words[: count or None]
            began = time.process_time()
            answers[name] = answer(asked)
            times[name].append((time.process_time() - began) / len(asked))
    rows = []
    for name, count, _ in ways:
        asked = words[: count or None]
        rates = error_rates(answers[name], [known[word] for word in asked])
        seconds = statistics.median(times[name])
        rows.append(
            {
                "way": name,
                "words": len(asked),
                "words_per_second": 1 / seconds,
                "milliseconds_per_word": 1000 * seconds,
                "slowest_over_fastest": max(times[name]) / min(times[name]),
                "symbol_error_rate": rates.symbol_error_rate,
                "exact_match_error": rates.exact_match_error,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--pairs", help="a file of source<TAB>target lines")
    parser.add_argument("--words", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    transducer = Transducer.load(given.model)
    pairs = read_pairs(given.pairs) if given.pairs else g2p.load().test
    sources = sorted(pairs.references())
    chosen = set(random.Random(0).sample(sources, min(given.words, len(sources))))
    pairs = Pairs(tuple(i for i in pairs.items if i[0] in chosen), pairs.name, pairs.sha256)
    ways = ways_of(transducer)
    other = g2p_en()
    ways += [other] if other else []
    rows = measure(ways, pairs, given.repeats)
    weights = sum(p.numel() for p in transducer.model.parameters())
    print(f"{pairs.name}, {len(chosen)} words; a model of {weights:,} weights; one thread\n")
    print("way                                 words/s   ms/word   symbol error   exact match")
    for row in rows:
        print(
            f"{row['way']:<34} {row['words_per_second']:8,.0f} "
            f"{row['milliseconds_per_word']:9.3f} {100 * row['symbol_error_rate']:12.2f} % "
            f"{100 * row['exact_match_error']:11.2f} %"
            + (f"  ({row['words']} words)" if row["words"] != len(chosen) else "")
        )
    if other:
        print(
            "\ng2p-en was trained on all of CMUdict, the test words most probably included; "
            "the model was not.\nStress is taken off g2p-en's answers."
        )
    if given.json:
        report = {
            "regard": regard.__version__,
            "torch": torch.__version__,
            "machine": platform.processor() or platform.machine(),
            "threads": 1,
            "data": {"name": pairs.name, "sha256": pairs.sha256, "words": len(chosen)},
            "model": {
                "weights": weights,
                "shape": transducer.description.model.to_json(),
                "settings": transducer.description.made_by.get("settings"),
                "train": transducer.description.made_by.get("train"),
            },
            "repeats": given.repeats,
            "rows": rows,
        }
        given.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
