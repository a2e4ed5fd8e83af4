"""The report of the main job: what attention fixed, in one HTML file that works offline.

Every number in its sentences is computed from the results. Parts that a run did not produce
are left out, and the report says so.
"""

import html
import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.alignment import Alignment
from regard.demo.copy_results import MEASURES, Cell, CopyResults, model_name, percent
from regard.demo.page import inline_svg, page
from regard.errors import InputError, explain

__all__ = ["report_html", "write_report"]

_TITLE = "What did attention fix?"


def write_report(
    results: Mapping[str, Any], figures: Mapping[str, str], path: str | os.PathLike[str]
) -> Path:
    """Write the report; an existing file is replaced only once the new one is whole.

    Parameters
    ----------
    results : mapping
        The content of ``demo.json``; parts may be missing.
    figures : mapping of str to str
        SVG text under the names of :func:`regard.demo.plots.demo_figures`.
    path : path of the HTML file

    Returns
    -------
    path : Path

    Raises
    ------
    InputError
        The file cannot be written, or as :func:`report_html` does.
    """
    path = Path(path)
    text = report_html(results, figures)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(
            explain(
                "write_report(): the report cannot be written",
                expected=f"{path.name} in a directory that can be written to",
                got=str(error),
            )
        ) from error
    return path


def report_html(results: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """Return the report as HTML text.

    Parameters
    ----------
    results, figures
        As :func:`write_report` takes them.

    Raises
    ------
    InputError
        A figure has an unknown name or refers to something outside itself, or the copy results
        are not sound.
    """
    examples = results.get("g2p", {}).get("examples", ())
    known = ["accuracy", "alignments", *(f"word_{n}" for n in range(1, len(examples) + 1))]
    strange = [name for name in figures if name not in known]
    if strange:
        raise InputError(
            explain(
                f"report: the figure {strange[0]!r} belongs nowhere",
                expected=", ".join(known),
                got=", ".join(figures),
            )
        )
    copy = CopyResults.read(results["copy"]) if results.get("copy") else None
    made_by = results.get("made_by", {})
    body = [
        f"<header><h1>{_TITLE}</h1>",
        f'<p class="quiet">{_byline(made_by)}</p></header>',
        "<main>",
        *(
            _copying(copy, figures)
            if copy
            else ["<p>The copy task was not part of this run.</p>"]
        ),
        *_alignments(results.get("alignments", {}).get("copy", {}), figures),
        *_letters(results.get("g2p"), figures),
        *_made(copy, results),
        *_limits(copy),
        "</main>",
    ]
    return page(f"regard demo: {_TITLE}", "\n".join(body))


def _text(value: Any) -> str:
    # A number and its sign stay on one line.
    return html.escape(str(value)).replace(" %", "\u00a0%")


def _byline(made_by: Mapping[str, Any]) -> str:
    version, started = made_by.get("version"), made_by.get("started")
    parts = [f"regard {version}" if version else "regard", started]
    return _text(" · ".join(str(part) for part in parts if part))


def _copying(copy: CopyResults, figures: Mapping[str, str]) -> list[str]:
    finding = copy.finding()
    lines = [
        f'<p class="finding">{_text(finding)}</p>',
        "<p>The task is to write down the sequence that was just read. Without attention, all"
        " of it has to pass through one state of fixed size; with attention, each step may look"
        " at the source again. A token counts as right when it stands in its place.</p>",
    ]
    if "accuracy" in figures:
        label = f"Line chart of tokens right against length. {finding}"
        drawn = inline_svg(figures["accuracy"], name="accuracy", label=label, narrowest=540)
        lines.append(
            f"<figure>{drawn}<figcaption>Tokens right by length of the sequence. The tables"
            " below hold the same figures.</figcaption></figure>"
        )
    lines.append("<h2>The figures</h2>")
    lines += [table for measure in MEASURES if (table := _table(copy, measure))]
    return lines


def _spread(copy: CopyResults) -> str:
    if copy.most_seeds > 1:
        return (
            f"Mean of {copy.most_seeds} seeds; the spread runs from the lowest to the highest."
        )
    return "One seed, so no spread is shown."


def _table(copy: CopyResults, measure: str) -> str:
    cells = {m: [copy.cell(m, n, measure) for n in copy.lengths] for m in copy.models}
    if not any(cell for row in cells.values() for cell in row):
        return ""
    beyond = [copy.extrapolates(length) for length in copy.lengths]
    groups = "".join(
        f'<th scope="colgroup" colspan="{len(list(run))}"{_shade(outside)}>'
        f"{'not trained on: extrapolation' if outside else 'trained lengths'}</th>"
        for outside, run in itertools.groupby(beyond)
    )
    heads = "".join(
        f'<th scope="col"{_shade(outside)}>{length}</th>'
        for length, outside in zip(copy.lengths, beyond, strict=True)
    )
    rows = [
        f'<tr><th scope="row">{_text(model_name(model))}</th>'
        + "".join(
            f"<td{_shade(outside)}>{_cell(cell)}</td>"
            for cell, outside in zip(row, beyond, strict=True)
        )
        + "</tr>"
        for model, row in cells.items()
    ]
    gaps = [copy.gap(length, measure) for length in copy.lengths]
    if any(gap is not None for gap in gaps):
        rows.append(
            '<tr class="gap"><th scope="row">best attention minus none</th>'
            + "".join(
                f"<td{_shade(outside)}>{'–' if gap is None else f'{100 * gap:+.1f}'}</td>"  # noqa: RUF001 - a dash for a figure that is not there
                for gap, outside in zip(gaps, beyond, strict=True)
            )
            + "</tr>"
        )
    name = MEASURES[measure]
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="table of {name}">'
        f"<table><caption><span>{name.capitalize()}, %. {_spread(copy)}</span></caption><thead>"
        f'<tr><th scope="col" rowspan="2">length</th>{groups}</tr><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _shade(outside: bool) -> str:
    return ' class="beyond"' if outside else ""


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return '<span aria-label="not measured">–</span>'  # noqa: RUF001 - see above
    mean = _text(percent(cell.mean))
    if cell.seeds < 2:
        return mean
    return f"{mean}<small>{_text(percent(cell.low))} to {_text(percent(cell.high))}</small>"


def _alignments(copied: Mapping[str, Any], figures: Mapping[str, str]) -> list[str]:
    lines = ["<h2>Where the copy models looked</h2>"]
    if not copied:
        return [*lines, "<p>No alignment was recorded in this run.</p>"]
    facts = [fact for model, data in copied.items() if (fact := _looked(model, data))]
    if "alignments" in figures:
        label = f"Heat maps of attention weights, one a model. {' '.join(facts)}"
        narrowest = 620 if len(copied) > 1 else 0
        drawn = inline_svg(
            figures["alignments"], name="alignments", label=label, narrowest=narrowest
        )
        lines.append(
            f"<figure>{drawn}<figcaption>One row a step of the decoder, one column a token of"
            " the source; darker is more weight (brighter on a dark page). A model that copies"
            " moves along the diagonal.</figcaption></figure>"
        )
    return [*lines, "<ul>", *(f"<li>{_text(fact)}</li>" for fact in facts), "</ul>"]


def _looked(model: str, data: Mapping[str, Any] | None) -> str:
    if not data:
        return ""
    if not data.get("weights"):
        return f"{model_name(model)}: wrote nothing."
    alignment = Alignment.from_dict(data)
    forward, near = alignment.monotonicity(), alignment.diagonal_mass()
    if forward is None or near is None:
        return f"{model_name(model)}: too few steps to say how it moved."
    length = data.get("length", len(alignment.source))
    return (
        f"{model_name(model)}, one sequence of length {length}: {percent(forward)} % of steps"
        f" do not move back, {percent(near)} % of the weight is within one place of the"
        " diagonal."
    )


def _letters(g2p: Mapping[str, Any] | None, figures: Mapping[str, str]) -> list[str]:
    lines = ["<h2>Letters to sounds</h2>"]
    if not g2p:
        return [*lines, "<p>Letters to sounds was not part of this run.</p>"]
    attention = g2p.get("attention")
    model = f"with {model_name(attention)} attention" if attention else "with attention"
    if attention == "none":
        model = "without attention"
    lines.append(
        f"<p>The same kind of model, {_text(model)}, reads a word's letters and writes its"
        " sounds. It was scored on words that it had not seen, against the nearest of all"
        " listed pronunciations.</p>"
    )
    numbers = [
        (f"{percent(g2p['per'])} %" if "per" in g2p else None, "phoneme error rate"),
        (f"{percent(g2p['wer'])} %" if "wer" in g2p else None, "of words with any error"),
        (f"{g2p['n_test']:,}" if "n_test" in g2p else None, "test words"),
    ]
    shown = [f"<li><b>{_text(n)}</b> {said}</li>" for n, said in numbers if n is not None]
    lines += ['<ul class="numbers">', *shown, "</ul>"] if shown else []
    cards = [
        _word(example, figures.get(f"word_{number}"), number)
        for number, example in enumerate(g2p.get("examples", ()), start=1)
    ]
    return [*lines, '<div class="words">', *cards, "</div>"] if cards else lines


def _word(example: Mapping[str, Any], svg: str | None, number: int) -> str:
    word = "".join(example["source"]).lower()
    written = _sounds(example.get("target", ()))
    listed = [_sounds(reference) for reference in example.get("references", ())]
    if not listed:
        verdict = ""
    elif written in listed:
        verdict = "<dt>verdict</dt><dd>as listed</dd>"
    else:
        verdict = "<dt>verdict</dt><dd>not among those listed</dd>"
    label = f"Heat map: where the model looked in {word} while writing {written}."
    drawn = f"<h3>{_text(word)}</h3>"
    if svg:  # the picture has the word as its title
        drawn = inline_svg(svg, name=f"word-{number}", label=label)
    references = "<br>".join(_text(reference) for reference in listed) or "none"
    return (
        f"<figure>{drawn}<figcaption><dl>"
        f'<dt>predicted</dt><dd class="tokens">{_text(written) or "nothing"}</dd>'
        f'<dt>listed</dt><dd class="tokens">{references}</dd>{verdict}'
        "</dl></figcaption></figure>"
    )


def _sounds(tokens: Sequence[str]) -> str:
    # Marks such as an end of sequence stand in angle brackets and are no sounds.
    return " ".join(t for t in tokens if not (t.startswith("<") and t.endswith(">")))


def _made(copy: CopyResults | None, results: Mapping[str, Any]) -> list[str]:
    made_by = results.get("made_by", {})
    rows: list[tuple[str, str]] = []
    if made_by.get("command"):
        rows.append(("command", f"<code>{_text(made_by['command'])}</code>"))
    for key, name in (
        ("version", "regard"),
        ("torch", "PyTorch"),
        ("seed", "seed"),
        ("threads", "threads"),
        ("started", "started"),
    ):
        if made_by.get(key) is not None:
            rows.append((name, _text(made_by[key])))
    if made_by.get("wall_seconds") is not None:
        rows.append(("wall time", _duration(made_by["wall_seconds"])))
    if copy is not None:
        if copy.seeds:
            rows.append(("copy task, seeds", _text(", ".join(map(str, copy.seeds)))))
        if copy.steps is not None:
            rows.append(("copy task, training steps", f"{copy.steps:,} a model"))
        rows.append(("copy task, lengths trained", f"{copy.trained[0]} to {copy.trained[1]}"))
        seconds = [
            f"{model_name(model)} {sum(found['cpu_seconds']) / len(found['cpu_seconds']):.0f}"
            for model, found in results["copy"].get("models", {}).items()
            if found.get("cpu_seconds")
        ]
        if seconds:
            rows.append(("copy task, CPU seconds a model", _text(", ".join(seconds))))
    if results.get("g2p", {}).get("seed") is not None:
        rows.append(("letters to sounds, seed", _text(results["g2p"]["seed"])))
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    return ["<h2>How this was made</h2>", f"<dl>{listed}</dl>"]


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _limits(copy: CopyResults | None) -> list[str]:
    limits = [
        "One architecture was tried: a recurrent encoder and decoder (GRU). Other architectures"
        " may behave otherwise.",
        "The models are small and trained for minutes. Longer training moves every figure.",
        "Copying random symbols isolates the bottleneck; text is not random, so the gap there"
        " is another one.",
        "Weights say where the model looked. By themselves they do not explain why it answered"
        " as it did.",
        "Chance is what guessing evenly among the symbols would get.",
    ]
    if copy is not None:
        first, last = copy.trained
        limits.insert(
            2,
            f"Lengths outside {first} to {last} were not trained on. What a model does there is"
            " extrapolation: it tests the training's reach, not attention as such.",
        )
        if copy.most_seeds < 2:
            limits.append("One seed was run: nothing here says how much another would differ.")
    items = "".join(f"<li>{_text(limit)}</li>" for limit in limits)
    return ["<h2>What this does not show</h2>", f"<ul>{items}</ul>"]
