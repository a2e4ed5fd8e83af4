"""Exported models: size, agreement, errors and speed beside PyTorch and g2p-en.

Takes a trained model of the recipe g2p, exports it as NumPy in float32, float16 and int8 and as
ONNX, and compares all of them on the 12,000 words of the test part of the lexicon that ships
with regard (CMUdict, the split of the published results, without stress): bytes, greedy answers
that are the same as the trained model's, the largest difference of a step, error rates, and
words a second of processor time on one thread, everything interleaved in one run, medians of
the repeats. ``docs/export_page.py`` makes tables of the JSON file.

    python benchmarks/runtimes.py MODEL [--words 1500] [--repeats 3] [--json FILE]

g2p-en 2.1.0, a NumPy program too, is timed if it is installed, without its dictionary, as
``benchmarks/decoding.py`` describes with the caveats: it has most probably been trained on the
test words, and it answers one word at a time.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402 - threads are counted when it loads
import onnxruntime  # noqa: E402
import torch  # noqa: E402

import regard  # noqa: E402
from peers.g2p_en_network import g2p_en_network  # noqa: E402
from regard.seq2seq.export.agreement import agreement  # noqa: E402
from regard.seq2seq.export.onnx_files import onnx_files  # noqa: E402
from regard.seq2seq.export.weights import single, weights_of  # noqa: E402
from regard.seq2seq.pairs import Pairs  # noqa: E402
from regard.seq2seq.rates import rates_of  # noqa: E402
from regard.seq2seq.recipes import g2p  # noqa: E402
from regard.seq2seq.rewriter import Rewriter  # noqa: E402
from regard.seq2seq.runtime.exported import exported_bytes, exported_of  # noqa: E402
from regard.seq2seq.runtime.model import Model  # noqa: E402
from regard.seq2seq.runtime.numbers import NUMBERS  # noqa: E402
from regard.seq2seq.runtime.transducer import NumpyTransducer  # noqa: E402
from regard.seq2seq.search import SearchSettings  # noqa: E402
from regard.seq2seq.transducer import Transducer  # noqa: E402

ALONE = 200
"""Words that are answered one by one."""

Answer = Callable[[Sequence[str]], Any]


def forms_of(trained: Transducer) -> tuple[dict[str, NumpyTransducer], dict[str, int]]:
    """Return the exported forms, read back, and their bytes."""
    model, description = single(trained.model, "model"), trained.description
    forms: dict[str, NumpyTransducer] = {}
    sizes = {}
    for numbers in NUMBERS:
        data = exported_bytes(description, weights_of(model), numbers)
        read = exported_of(data, Path(numbers))
        name = f"NumPy, {numbers}"
        forms[name] = NumpyTransducer(Model(description.model, read.weights), description)
        sizes[name] = len(data)
    files, other = onnx_files(model, description)
    forms["ONNX, float32"] = other
    sizes["ONNX, float32"] = sum(len(files[name]) for name in ("encoder.onnx", "step.onnx"))
    return forms, sizes


def ways_of(name: str, rewriter: Rewriter) -> dict[tuple[str, str], tuple[int, Answer]]:
    """Return what to time: (form, way) -> how many words (0 = all), and what answers them."""

    def batches(beam: int) -> Answer:
        how = SearchSettings(beam=beam)
        return lambda words: rewriter.predict(words, search=how, need_weights=False)

    def alone(words: Sequence[str]) -> None:
        for word in words:
            rewriter.predict([word], need_weights=False)

    return {
        (name, "greedy"): (0, batches(1)),
        (name, "beam 5"): (0, batches(5)),
        (name, "greedy, one by one"): (ALONE, alone),
    }


def timed(
    ways: dict[tuple[str, str], tuple[int, Answer]], words: list[str], repeats: int
) -> list[dict[str, Any]]:
    """Time all ways in turns."""
    times: dict[tuple[str, str], list[float]] = {key: [] for key in ways}
    for _, answer in ways.values():
        answer(words[:20])  # what happens only once
    for _ in range(repeats):
        for key, (count, answer) in ways.items():
            asked = words[: count or None]
            began = time.process_time()
            answer(asked)
            times[key].append(len(asked) / (time.process_time() - began))
    return [
        {
            "form": form,
            "way": way,
            "words": ways[form, way][0] or len(words),
            "words_per_second": statistics.median(found),
            "fastest_over_slowest": max(found) / min(found),
        }
        for (form, way), found in times.items()
    ]


def compared(
    trained: Transducer, forms: dict[str, NumpyTransducer], sizes: dict[str, int], test: Pairs
) -> list[dict[str, Any]]:
    """Compare all forms with the trained model on all test words."""
    ids = [trained.description.source.encode(word) for word in test.references()]
    before = rates_of(trained, test)
    rows: list[dict[str, Any]] = [
        {
            "form": "PyTorch",
            "exact_match_error": before.exact_match_error,
            "symbol_error_rate": before.symbol_error_rate,
        }
    ]
    for name, form in forms.items():
        found, rates = agreement(trained, form, ids), rates_of(form, test)
        rows.append(
            {
                "form": name,
                "bytes": sizes[name],
                "words": found.sources,
                "same_answers": found.same,
                "steps": found.steps,
                "probability_difference": found.probability_difference,
                "log_probability_difference": found.difference,
                "weight_difference": found.weight_difference,
                "exact_match_error": rates.exact_match_error,
                "symbol_error_rate": rates.symbol_error_rate,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--words", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    trained = Transducer.load(given.model)
    forms, sizes = forms_of(trained)
    test = g2p.load().test
    words = sorted(test.references())
    words = words[:: max(1, len(words) // given.words)][: given.words]
    words = [words[i] for i in np.random.default_rng(0).permutation(len(words))]
    ways = ways_of("PyTorch", trained)
    for name, form in forms.items():
        if name not in ("NumPy, float16", "NumPy, int8"):  # the same once they are read
            ways |= ways_of(name, form)
    network = g2p_en_network()
    if network is not None:
        ways["g2p-en", "greedy, one by one"] = (ALONE, lambda ws: [network(w) for w in ws])
    report: dict[str, Any] = {
        "regard": regard.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "onnxruntime": onnxruntime.__version__,
        "machine": platform.processor() or platform.machine(),
        "threads": 1,
        "data": {"name": test.name, "sha256": test.sha256, "words": len(words)},
        "model": {
            "weights": sum(p.numel() for p in trained.model.parameters()),
            "shape": trained.description.model.to_json(),
            "settings": trained.description.made_by.get("settings"),
            "train": trained.description.made_by.get("train"),
        },
        "repeats": given.repeats,
        "agreement": compared(trained, forms, sizes, test),
        "speed": timed(ways, words, given.repeats),
    }
    for row in [*report["agreement"], *report["speed"]]:
        print(json.dumps(row))
    if given.json:
        given.json.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
