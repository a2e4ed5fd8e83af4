r"""The check asked of attention that people use, library by library.

Every attention class of transformers that a small configuration builds, in a wrapper that is
made for it; every attention of PyTorch, Keras (on PyTorch), JoeyNMT, OpenNMT-py, AllenNLP,
d2l and x-transformers, with what its manual says as the contract. What is not installed is
skipped and said to be. Results go to ``docs/results/real_code.json`` and from there to
``docs/real_code.md``::

    pip install transformers==5.24.0 keras==3.15.1
    pip install --no-deps x-transformers==2.31.10 einops einx loguru torch-einops-utils \
        joeynmt==2.3.0 OpenNMT-py==3.5.1 configargparse allennlp-light==1.0.0 ai2-tango \
        cached-path rjsonnet glob2 more_itertools base58 dill click-help-colors pytz \
        importlib_metadata zipp d2l==1.0.3
    python benchmarks/real_code

``--only torch`` asks one library, ``--family bert`` one family of transformers; with
``--join`` what one library came to takes its place among the committed results. ``--again``
asks the classes of transformers that the committed results say were not asked.
``--no-contract`` asks with nothing declared, of transformers one class of ``--families`` of
its families; answers take their places in ``docs/results/real_code_undeclared.json``.
``--planted`` asks the wrappers of rare kinds with a slip in each.
``--page`` rewrites the page from the committed results; ``--check`` fails where it differs.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
RESULTS = ROOT / "docs" / "results" / "real_code.json"
PLANTED = ROOT / "docs" / "results" / "real_code_planted.json"
UNDECLARED = ROOT / "docs" / "results" / "real_code_undeclared.json"
PAGE = ROOT / "docs" / "real_code.md"
# library -> (module, distribution)
LIBRARIES = {
    "torch": ("torch", "torch"),
    "transformers": ("transformers", "transformers"),
    "keras": ("keras", "keras"),
    "x_transformers": ("x_transformers", "x-transformers"),
    "joeynmt": ("joeynmt", "joeynmt"),
    "onmt": ("onmt", "OpenNMT-py"),
    "allennlp_light": ("allennlp_light", "allennlp-light"),
    "d2l": ("d2l", "d2l"),
}
SECONDS = 300.0  # without a word from a process, after which what it was at counts as lost


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=sorted(LIBRARIES))
    parser.add_argument("--family", action="append", help="of transformers")
    parser.add_argument(
        "--join", action="store_true", help="with --only: write it among the others' results"
    )
    parser.add_argument(
        "--no-contract", action="store_true", help="declare nothing: one class a family"
    )
    parser.add_argument(
        "--families", type=int, default=150, help="with --no-contract: how many of transformers"
    )
    parser.add_argument(
        "--again", action="store_true", help="ask what transformers' results say was not asked"
    )
    parser.add_argument("--name", help="with --no-contract: a pattern of the names to ask")
    parser.add_argument(
        "--planted", action="store_true", help="slips in the wrappers of rare kinds"
    )
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    from real_code.classes import joined, spliced, unasked  # noqa: PLC0415 - of this folder
    from real_code.page import page  # noqa: PLC0415
    from real_code.undeclared import merged  # noqa: PLC0415

    if given.planted:
        PLANTED.write_text(json.dumps(slips(), indent=1) + "\n", encoding="utf-8")
    elif given.again:
        whole = json.loads(RESULTS.read_text(encoding="utf-8"))
        part = measure(["transformers"], given.family, names=unasked(whole))
        RESULTS.write_text(json.dumps(spliced(whole, part), indent=1) + "\n", encoding="utf-8")
    elif given.no_contract:
        part = undeclared(
            given.only or list(LIBRARIES), given.family, given.families, given.name or ""
        )
        before = _read(UNDECLARED)
        text = json.dumps(merged(before, part), indent=1)
        UNDECLARED.write_text(text + "\n", encoding="utf-8")
    elif not (given.page or given.check):
        libraries = given.only or list(LIBRARIES)
        results = measure(libraries, given.family)
        if (given.only or given.family) and not given.join:
            print(json.dumps({k: results[k] for k in ("findings", "evidence")}, indent=1))
            return
        if given.join:
            results = joined(_read(RESULTS), results, libraries)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    text = page(
        json.loads(RESULTS.read_text(encoding="utf-8")), _read(UNDECLARED), _read(PLANTED)
    )
    if given.check:
        if PAGE.read_text(encoding="utf-8") != text:
            sys.exit(
                f"{PAGE.name} is not that of {RESULTS.name}: run benchmarks/real_code --page"
            )
        return
    PAGE.write_text(text, encoding="utf-8")


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def measure(
    libraries: list[str], families: list[str] | None, *, names: set[str] | None = None
) -> dict[str, Any]:
    """Ask with what the manuals say as the contract, and measure the evidence."""
    started = time.monotonic()
    rows, versions = _asked(libraries, families, names=names)
    from real_code.evidence import measured  # noqa: PLC0415

    modules = {LIBRARIES[library][0] for library in libraries}
    whole = families is None or names is not None
    evidence = measured(modules) if whole else {}
    return _summed(rows, versions, evidence, started)


def undeclared(
    libraries: list[str], families: list[str] | None, count: int, pattern: str = ""
) -> dict[str, Any]:
    """Ask with nothing declared, those whose names hold a pattern."""
    if "transformers" in libraries and families is None:
        from real_code import huggingface  # noqa: PLC0415
        from real_code.undeclared import sampled  # noqa: PLC0415

        families = sampled([m.split(".")[2] for m in huggingface.families()], count)
    rows, versions = _asked(libraries, families, is_declared=False, pattern=pattern)
    command = "python benchmarks/real_code --no-contract"
    return {"command": command, "versions": versions, "rows": rows}


def slips() -> dict[str, Any]:
    """Ask the wrappers of rare kinds with a slip planted in each."""
    _prepared()
    import transformers  # noqa: PLC0415

    from real_code.planted import planted  # noqa: PLC0415

    transformers.logging.set_verbosity_error()
    rows = []
    for row in planted():
        rows.append(row)
        print(row["class"], row["said"], file=sys.stderr, flush=True)
    version = importlib.metadata.version("transformers")
    command = "python benchmarks/real_code --planted"
    return {"command": command, "versions": {"transformers": version}, "rows": rows}


def _asked(
    libraries: list[str],
    families: list[str] | None,
    *,
    is_declared: bool = True,
    names: set[str] | None = None,
    pattern: str = "",
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    _prepared()
    rows: list[dict[str, Any]] = []
    versions = {"python": platform.python_version()}
    for library in libraries:
        module, distribution = LIBRARIES[library]
        if importlib.util.find_spec(module) is None:
            rows.append({"library": library, "name": library, "skip": "it is not installed"})
            continue
        versions[distribution] = importlib.metadata.version(distribution)
        for row in _of(library, families, is_declared, names, pattern):
            rows.append({"library": library, **row})
            print(_line(row), file=sys.stderr, flush=True)
    return rows, versions


def _prepared() -> None:
    """Import what forks share, before them, and compute on one core."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    warnings.simplefilter("ignore")
    import torch  # noqa: PLC0415 - the page can be checked without it

    import regard.check.check  # noqa: PLC0415
    import regard.check.relations.every  # noqa: PLC0415
    import regard.check.trace  # noqa: F401, PLC0415
    from real_code.recurrent import placeholders  # noqa: PLC0415

    torch.set_num_threads(1)
    placeholders()


def _of(
    library: str,
    families: list[str] | None,
    is_declared: bool,
    names: set[str] | None = None,
    pattern: str = "",
) -> Iterator[dict[str, Any]]:
    from real_code import (  # noqa: PLC0415
        keras_layers,
        pytorch,
        recurrent,
        textbook,
        x_layers,
    )

    if library == "transformers":
        yield from _transformers(families, is_declared, names)
        return
    makers: dict[str, Callable[[], Any]] = {
        "torch": pytorch.subjects,
        "keras": keras_layers.subjects,
        "x_transformers": x_layers.subjects,
        "joeynmt": recurrent.joeynmt,
        "onmt": recurrent.opennmt,
        "allennlp_light": recurrent.allennlp,
        "d2l": textbook.subjects,
    }

    def work() -> Iterator[dict[str, Any]]:
        made = ([s] for s in makers[library]() if re.search(pattern, s.name))
        yield from _each(made, is_declared)

    yield from _kept_apart(work, library)


def _transformers(
    families: list[str] | None, is_declared: bool, names: set[str] | None = None
) -> Iterator[dict[str, Any]]:
    import transformers  # noqa: PLC0415

    from real_code import huggingface  # noqa: PLC0415

    transformers.logging.set_verbosity_error()
    # What the families share takes seconds to import: once, before the forks.
    for family in ("bert", "whisper", "sam", "gemma3"):
        importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    seen: dict[str, str] = {}
    for module in huggingface.families():
        if families and module.split(".")[2] not in families:
            continue
        beginning = f"transformers/{module.split('.')[2]}."
        if names is not None and not any(n.startswith(beginning) for n in names):
            continue

        def work(module: str = module) -> Iterator[dict[str, Any]]:
            try:
                found = huggingface.texts(module)
            except Exception as error:
                for name in huggingface.written(module):
                    whole = f"transformers/{module.split('.')[2]}.{name}"
                    yield {"name": whole, "skip": "it cannot be imported", "error": str(error)}
                return
            for name, digest in found if is_declared else found[:1]:
                whole = f"transformers/{module.split('.')[2]}.{name}"
                if names is not None and whole not in names:
                    continue
                if digest in seen:
                    yield {"name": whole, "same": seen[digest]}
                    continue
                yield {"digest": digest, "name": whole}
                try:
                    yield from _each(huggingface.subjects(module, name), is_declared)
                except OSError as error:  # a text that Python cannot tell from its neighbours
                    yield {"name": whole, "skip": f"its text is not found: {error}"}

        for row in _kept_apart(work, module):
            if "digest" in row:
                seen[row["digest"]] = row["name"]
            else:
                yield row


def _each(groups: Any, is_declared: bool) -> Iterator[dict[str, Any]]:
    from real_code.run import ask, choose  # noqa: PLC0415
    from real_code.subject import Skip  # noqa: PLC0415
    from real_code.undeclared import ask_undeclared  # noqa: PLC0415

    for forms in groups:
        if isinstance(forms, Skip):
            yield {"name": forms.name, "skip": forms.why, "error": forms.error}
            continue
        yield {"at": forms[0].name}
        try:
            chosen = choose(forms)
            if isinstance(chosen, Skip):
                row = {"name": chosen.name, "skip": chosen.why, "error": chosen.error}
            else:
                row = ask(chosen) if is_declared else ask_undeclared(chosen)
        except BaseException as error:  # a time limit is no Exception
            row = {"name": forms[0].name, "broken": f"{type(error).__name__}: {error}"}
        yield row


def _kept_apart(
    work: Callable[[], Iterator[dict[str, Any]]], name: str
) -> Iterator[dict[str, Any]]:
    from real_code.run import each  # noqa: PLC0415

    at = name
    for row in each(work, SECONDS):
        if "at" in row:
            at = row["at"]
        elif "lost" in row:
            yield {"name": at, "broken": row["lost"]}
        else:
            yield row


def _summed(
    rows: list[dict[str, Any]],
    versions: dict[str, str],
    evidence: dict[str, Any],
    started: float,
) -> dict[str, Any]:
    from real_code.verdicts import judge  # noqa: PLC0415

    findings, per = [], {}
    for row in rows:
        count = per.setdefault(
            row["library"],
            {"checked": 0, "same text": 0, "skipped": 0, "broken": 0, "relations": 0},
        )
        kinds = {"same": "same text", "skip": "skipped", "broken": "broken"}
        count[next((v for k, v in kinds.items() if k in row), "checked")] += 1
        count["relations"] += row.get("relations", 0)
        for found in row.get("findings", ()):
            verdict, key, words = judge(row["name"], found["code"], found["message"])
            verdict = "note" if found["level"] == "note" else verdict
            findings.append(
                {
                    "name": row["name"],
                    **found,
                    "verdict": verdict,
                    "evidence": key,
                    "why": words,
                }
            )
    skips: dict[str, list[str]] = {}
    for row in rows:
        if "skip" in row:
            skips.setdefault(_reason(row["skip"]), []).append(row["name"])
    return {
        "command": "python benchmarks/real_code",
        "versions": versions,
        "minutes": round((time.monotonic() - started) / 60, 1),
        "libraries": per,
        "families": len({r["name"].split(".")[0] for r in rows if "findings" in r}),
        "checked": [r["name"] for r in rows if "findings" in r],
        "same": {r["name"]: r["same"] for r in rows if "same" in r},
        "skipped": skips,
        "broken": {r["name"]: r["broken"] for r in rows if "broken" in r},
        "errors": {r["name"]: r["error"] for r in rows if r.get("error")},
        "findings": findings,
        "evidence": evidence,
    }


_REASONS = (
    ("its constructor asks for", "its constructor asks for what the wrapper does not know"),
    ("its call asks for", "its call asks for what the wrapper does not know"),
    ("its first argument is", "its first argument is no sequence of features"),
    ("build:", "the small configuration does not build it"),
    ("call:", "it does not run in the form that is tried"),
    ("its result is", "its result has other axes"),
    ("it cannot be imported", "a package that it imports is not installed"),
    ("it is not installed", "it is not installed"),
)


def _reason(why: str) -> str:
    return next((text for start, text in _REASONS if why.startswith(start)), why)


def _line(row: dict[str, Any]) -> str:
    said = row.get("skip") or row.get("broken") or row.get("same")
    if said:
        return f"{row['name']}: {said}"
    return f"{row['name']}: {[(f['code'], f['level']) for f in row['findings']] or 'nothing'}"


if __name__ == "__main__":
    main()
