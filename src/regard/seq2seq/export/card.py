"""The model card that goes with an exported model."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from regard.files import as_argument
from regard.seq2seq.description import Description
from regard.seq2seq.export.export import Export
from regard.seq2seq.export.measure import Speed
from regard.seq2seq.metrics import ErrorRates
from regard.version import __version__

__all__ = ["card_of"]

_NUMPY = """\
```bash
regard predict {argument} TEXT            # needs NumPy, not PyTorch
```

```python
from regard.seq2seq.runtimes import load

model = load({text})
print(model.predict(["TEXT"])[0].target)
```"""

_ONNX = """\
```bash
regard predict {argument} TEXT            # needs onnxruntime, not PyTorch
```

`encoder.onnx`, `step.onnx` and `greedy.onnx` (opset 17) run wherever ONNX does. `greedy.onnx`
takes `source` (batch, T_enc) and `lengths` (batch), ids and their number, and `limits` (batch),
the symbols that each answer may have, all int64. It returns `symbols` (batch, steps), where 2
ends an answer and 0 stands behind it, `log_probs`, and with attention `weights`
(batch, steps, T_enc). The vocabularies are JSON in the metadata of every file, under `regard`:
ids 0 to 3 are padding, begin, end and unknown, and the symbols follow from 4 on."""

_LIMITS = """\
- It answers texts of the kind that it was trained on; others get an answer too, and nothing in
  the answer says so. Symbols that training never showed are read as "something unknown".
- Training sources had up to {longest_source} symbols and targets up to {longest_target}; beyond
  that it has not been tried.
- A probability that it gives is the model's own confidence, not the chance of being right."""


def card_of(
    description: Description, export: Export, *, name: str, licence: str | None = None
) -> str:
    """Return the card as Markdown.

    Parameters
    ----------
    description : Description
    export : Export
    name : str
        Of the file or directory, without its place.
    licence : str, optional
        As the user states it.
    """
    sections = {
        "What it is": _what(description, export),
        "Licence": licence or "Not stated. Ask whoever gave you this model.",
        "Data": "\n".join(_data(description.made_by)),
        "Files": "\n".join(_files(export, name)),
        "Agreement with the trained model": _agreement(export),
        "Quality": _quality(export),
        "Speed": _speed(export),
        "How to use it": (_NUMPY if export.to == "numpy" else _ONNX).format(
            argument=as_argument(name), text=json.dumps(name, ensure_ascii=False)
        ),
        "Limits": _LIMITS.format(
            longest_source=description.longest_source,
            longest_target=description.longest_target,
        ),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    return f"# Model card: {name}\n\n{body}\n"


def _what(description: Description, export: Export) -> str:
    config = description.model
    seed = description.made_by.get("seed")
    parts = [
        f"{export.members} models that answer together, by the mean of their probabilities;"
        " the shape is that of the first. "
        * (export.members > 1)
        + "A sequence-to-sequence model that rewrites one text into another:"
        f" {config.cell.upper()} encoder{' in both directions' if config.bidirectional else ''}"
        f" and decoder, attention `{config.attention}`, {export.weights:,} weights stored as"
        f" {export.numbers}."
        f" {len(description.source) - 4} source symbols ({description.source.kind}),"
        f" {len(description.target) - 4} target symbols ({description.target.kind}).",
        f"Exported by regard {__version__}.",
    ]
    if seed is not None:
        parts.append(f"Trained with seed {seed}.")
    return " ".join(parts)


def _data(made_by: dict[str, Any]) -> Iterator[str]:
    yield "| part | name | pairs | sha256 |\n|---|---|---|---|"
    for part in ("train", "dev", "test"):
        data = made_by.get(part)
        if isinstance(data, dict):
            pairs = data.get("pairs", "")
            shown = f"{pairs:,}" if isinstance(pairs, int) else str(pairs)
            yield f"| {part} | {data.get('name', '')} | {shown} | `{data.get('sha256', '')}` |"


def _files(export: Export, called: str) -> Iterator[str]:
    yield "| file | bytes | sha256 |\n|---|---|---|"
    alone = called.endswith(".npz")  # one file, under the name that it was given
    for name, data in export.files.items():
        shown, digest = called if alone else name, hashlib.sha256(data).hexdigest()
        yield f"| {shown} | {len(data):,} | `{digest}` |"


def _agreement(export: Export) -> str:
    found = export.agreement
    text = (
        f"On {export.compared}: {found.same:,} of {found.sources:,} greedy answers are the"
        f" same. Led along the trained model's answers, {found.steps:,} steps differ by at most"
        f" {found.probability_difference:.1e} in the probability of a symbol,"
        f" {found.difference:.1e} in its logarithm"
    )
    if found.weight_difference:
        text += f" and {found.weight_difference:.1e} in an attention weight"
    return text + "."


def _quality(export: Export) -> str:
    if export.rates is None or export.trained_rates is None:
        return "Not measured at export: `--check FILE` does."

    def row(name: str, rates: ErrorRates) -> str:
        return (
            f"| {name} | {100 * rates.exact_match_error:.2f} | "
            f"{100 * rates.symbol_error_rate:.2f} |"
        )

    return "\n".join(
        [
            f"Greedy, {export.rates.examples:,} sources, in percent:\n",
            "| | exact-match error | symbol error rate |\n|---|---|---|",
            row("this export", export.rates),
            row("the trained model", export.trained_rates),
        ]
    )


def _speed(export: Export) -> str:
    def row(name: str, speed: Speed) -> str:
        return f"| {name} | {speed.greedy:,.0f} | {speed.alone:,.0f} |"

    return "\n".join(
        [
            "Sources a second of processor time, greedy, one thread, on the machine that "
            "exported it:\n",
            "| | in batches | one by one |\n|---|---|---|",
            row("this export", export.speed),
            row("the trained model in PyTorch", export.trained_speed),
        ]
    )
