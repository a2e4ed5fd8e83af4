"""What a worker process does: train one model, score it, say how far it is.

A job that is stopped leaves a checkpoint beside its result-to-be and ends with the same numbers
when it is taken up again.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes import copying, g2p
from regard.seq2seq.search import greedy
from regard.seq2seq.tensors import load_tensors, save_tensors
from regard.seq2seq.train import Progress, Trainer, TrainingState, new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import EOS

__all__ = ["do"]

Report = Callable[[float, str], None]
"""Takes the share that is done, 0 to 1, and a few words."""

_SAVE_EVERY = 10.0  # seconds; what a killed process loses at most
_SHOWN = 7  # seed of the sequence whose alignment is drawn
_TRAINING = 0.9  # share of a job that is training; the rest is scoring


def do(
    work: Mapping[str, Any], checkpoint: Path, model: Path, report: Report
) -> dict[str, Any]:
    """Do one job and return its results as JSON values.

    Parameters
    ----------
    work : mapping
        As :class:`regard.demo.plan.Plan` describes it.
    checkpoint : path
        Of the file (copy) that lets an interrupted job go on; removed by the caller.
    model : path
        Directory for the letters-to-sounds model, which outlives the job.
    report : callable
        Is told how far the job is.

    Raises
    ------
    InterruptedRun
        A signal came; the checkpoint is written.
    RegardError
        The job cannot be done.
    """
    torch.set_num_threads(1)
    if work["kind"] == "copy":
        return _copy(work, checkpoint, report)
    return _letters(work, model, report)


def _copy(work: Mapping[str, Any], checkpoint: Path, report: Report) -> dict[str, Any]:
    seed = work["seed"]
    model_config, batches, training = copying.settings(
        work["attention"], steps=work["steps"], longest=work["longest"], seed=seed
    )
    saved_at = time.monotonic()
    spent, began = 0.0, time.process_time()

    def save(trainer: Trainer) -> None:
        state = trainer.state()
        seconds = spent + time.process_time() - began
        save_tensors(checkpoint, state.tensors, {"run": state.info, "seconds": seconds})

    def on_progress(progress: Progress) -> None:
        nonlocal saved_at
        report(_TRAINING * progress.step / progress.total, f"loss {progress.loss:.3f}")
        if time.monotonic() - saved_at > _SAVE_EVERY:
            save(trainer)
            saved_at = time.monotonic()

    trainer = Trainer(
        new_model(model_config, seed=seed),
        batches,
        training,
        on_progress=on_progress,
        save=save,
    )
    if checkpoint.exists():
        tensors, info = load_tensors(checkpoint)
        trainer.load_state(TrainingState(tensors, info["run"]))
        spent = info["seconds"]
    trainer.run()
    seconds = spent + time.process_time() - began
    scores = []
    for done, length in enumerate(work["lengths"]):
        share = _TRAINING + (1 - _TRAINING) * done / len(work["lengths"])
        report(share, f"scoring length {length}")
        scores.append(copying.copy_score(trainer.model, length, count=work["sequences"]))
    return {
        "attention": work["attention"],
        "seed": seed,
        "token_accuracy": {str(s.length): s.token_accuracy for s in scores},
        "exact_match": {str(s.length): s.exact_match for s in scores},
        "cpu_seconds": round(seconds, 2),
        "alignment": _copy_alignment(trainer, work["shown_length"]),
    }


def _copy_alignment(trainer: Trainer, length: int) -> dict[str, Any] | None:
    if not length or not trainer.model.attends:
        return None
    content = copying.draw(1, length, torch.Generator().manual_seed(_SHOWN))
    source = torch.cat([content, content.new_full((1, 1), EOS)], dim=1)
    found = greedy(trainer.model, source, max_length=length)[0]
    assert found.weights is not None  # attends, asked above
    return {
        "length": length,
        "source": [_letter(i) for i in content[0].tolist()] + ["end"],
        "target": [_letter(i) for i in found.ids],
        "weights": [[round(float(w), 6) for w in row] for row in found.weights],
    }


def _letter(symbol: int) -> str:
    return chr(ord("a") + symbol - 4)  # the first four ids are reserved


def _letters(work: Mapping[str, Any], directory: Path, report: Report) -> dict[str, Any]:
    from regard.seq2seq.job import train_pairs  # noqa: PLC0415 - the copy jobs do without it

    report(0.0, "reading the lexicon")
    lexicon = g2p.load()
    settings = g2p.settings(work["preset"], seed=work["seed"])

    def on_progress(progress: Progress) -> None:
        report(_TRAINING * progress.step / progress.total, f"loss {progress.loss:.3f}")

    # Killed before its first checkpoint, the job begins again.
    begun = (directory / "training.safetensors").exists()
    transducer, result = train_pairs(
        lexicon.train,
        lexicon.dev,
        settings,
        directory=directory,
        resume=begun,
        force=not begun,
        made_by={"command": "regard demo"},
        on_progress=on_progress,
    )
    report(_TRAINING, "scoring the test words")
    test = _first(lexicon.test, work["test_words"])
    rates = transducer.error_rates(test)
    return {
        "per": rates.symbol_error_rate,
        "wer": rates.exact_match_error,
        "n_test": len(test.references()),
        "n_train": len(lexicon.train),
        "attention": settings.model["attention"],
        "steps": result.steps,
        "seed": work["seed"],
        "cpu_seconds": round(result.seconds, 2),
        "examples": [_example(transducer, lexicon.test, word) for word in work["words"]],
    }


def _first(pairs: Pairs, count: int) -> Pairs:
    if not count:
        return pairs
    chosen = set(list(pairs.references())[:count])
    return Pairs(tuple(item for item in pairs.items if item[0] in chosen), pairs.name)


def _example(transducer: Transducer, test: Pairs, word: str) -> dict[str, Any]:
    prediction = transducer.predict([word])[0]
    weights = prediction.hypothesis.weights
    assert weights is not None  # the recipe's model attends
    references = [text.split() for text in test.references()[word]]
    return {
        "source": list(prediction.source_symbols),
        "target": list(prediction.target_symbols),
        "references": references,
        "weights": [[round(float(w), 6) for w in row] for row in weights],
    }
