"""Do the tests notice? Plant one defect after another in `attention/`, and run the tests on it.

Each mutant is a defect that attention code really has: a flipped mask, a softmax without its
maximum, a causal mask off by one. The package is copied, one edit is made in the copy, and the
tests of `attention/` and of the contract run against it until one fails. A mutant that none
notices survives, and survivors are what this script is for.

    python benchmarks/mutants.py            # all; writes docs/results/mutants.json and the page
    python benchmarks/mutants.py --only heads --dry   # some, nothing written
    python benchmarks/mutants.py --check    # does the page match the JSON, do all edits apply?
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "results" / "mutants.json"
PAGE = ROOT / "docs" / "mutants.md"
# Cheap tests first; what they miss meets all of them.
ROUNDS = (("tests/attention", "-k", "not jax"), ("tests/attention", "tests/contract"))


class Mutant(NamedTuple):
    """One edit."""

    file: str  # below src/regard/attention
    defect: str
    old: str
    new: str


_W, _S, _A, _H, _T = "weights.py", "scores.py", "attend.py", "heads.py", "steps.py"
_P, _D = "masks/patterns.py", "masks/torch_mha.py"
_SHARE = "xp.exp(kept - peak)"

MUTANTS = [
    Mutant(_W, "no maximum subtracted", "xp.exp(work - peak)", "xp.exp(work)"),
    Mutant(_W, "no maximum subtracted under a mask", _SHARE, "xp.exp(kept)"),
    Mutant(_W, "mask flipped", f"xp.where(mask, {_SHARE}", f"xp.where(~mask, {_SHARE}"),
    Mutant(_W, "forbidden scores kept", "xp.where(mask, work, peak)", "work"),
    Mutant(_W, "maximum taken over forbidden keys too", "xp.where(mask, work, lowest)", "work"),
    Mutant(_W, "maximum over the whole array", "lowest), axis=-1", "lowest), axis=None"),
    Mutant(
        _W,
        "softmax over the queries' axis",
        "xp.sum(exponentials, axis=-1",
        "xp.sum(exponentials, axis=0",
    ),
    Mutant(
        _W,
        "empty rows divide by zero",
        "xp.where(total > 0, total, xp.ones_like(total))",
        "total",
    ),
    Mutant(_W, "empty rows get equal weights", "xp.zeros_like(work)", "xp.ones_like(work)"),
    Mutant(_W, "half precision summed in half precision", ".bits < 32", ".bits < 0"),
    Mutant(_W, "a row of -inf gives NaN", 'peak == float("-inf")', 'peak == float("nan")'),
    Mutant(
        _W,
        "writes into its input",
        "exponentials = xp.exp(work - peak)",
        "work -= peak\n        exponentials = xp.exp(work)",
    ),
    Mutant(
        _W,
        "lists ignore the mask",
        "return normalise(scores, mask)",
        "return normalise(scores, None)",
    ),
    Mutant(_S, "tanh forgotten", "xp.tanh(pairs)", "pairs"),
    Mutant(_S, "sigmoid for tanh", "xp.tanh(pairs)", "(1 / (1 + xp.exp(-pairs)))"),
    Mutant(
        _S,
        "W_a and U_a swapped",
        "query @ xp.matrix_transpose(W_a)",
        "query @ xp.matrix_transpose(U_a)",
    ),
    Mutant(_S, "keys subtracted from queries", "axis=-2) + xp.expand", "axis=-2) - xp.expand"),
    Mutant(_S, "W of general transposed", "(query @ W)", "(query @ W.T)"),
    Mutant(_S, "W of general left out", "(query @ W) @ ", "query @ "),
    Mutant(_S, "scale dropped", "query * (1.0 / math.sqrt(query.shape[-1]))", "query"),
    Mutant(_S, "scaled by d, not its root", "math.sqrt(query.shape[-1])", "query.shape[-1]"),
    Mutant(
        _S, "scaled by the length", "math.sqrt(query.shape[-1])", "math.sqrt(query.shape[-2])"
    ),
    Mutant(_S, "concat reads the key first", "W_c[:, :d_s]", "W_c[:, -d_s:]"),
    Mutant(_S, "bilinear means dot", '"bilinear": general', '"bilinear": dot'),
    Mutant(_A, "bias subtracted", "scores = scores + bias", "scores = scores - bias"),
    Mutant(_A, "bias ignored", "scores = scores + bias", "scores = scores * 1"),
    Mutant(_A, "scale ignored", "scores = scores * scale", "scores = scores * 1"),
    Mutant(_A, "scaled twice", 'score = "dot"\n', 'score = "scaled_dot"\n'),
    Mutant(_A, "value ignored", "value = key if value is None else value", "value = key"),
    Mutant(
        _A,
        "mask not given to the normaliser",
        "normalise(scores, may)",
        "normalise(scores, None)",
    ),
    Mutant(
        _A,
        "queries that see nothing not cleared",
        "return clear(asking, xp.any(may, axis=-1)), ",
        "return asking, ",
    ),
    Mutant(
        _A,
        "padded keys not cleared",
        "query, key = clear_unused(query, key, may)",
        "query, _ = clear_unused(query, key, may)",
    ),
    Mutant(
        _A,
        "padded values not cleared",
        "value = key if shared else clear_unused(query, value, may)[1]",
        "value = value",
    ),
    Mutant(
        _A, "keys cleared by the wrong rule", "xp.any(may, axis=-2)", "xp.all(may, axis=-2)"
    ),
    Mutant(
        _A,
        "padding projected before it is cleared",
        "asking, found = clear_unused(x, x, may)",
        "asking, found = x, x",
    ),
    Mutant(_A, "padding asks in self-attention", "x = clear(x, real[..., 0, :])", "x = x"),
    Mutant(
        _A, "context of raw scores", "xp.matmul(weights, value)", "xp.matmul(scores, value)"
    ),
    Mutant(
        _A,
        "context changes when weights are not asked for",
        "return Attended(xp.matmul(weights, value), ",
        "return Attended(xp.matmul(weights, value) * (1.0 if need_weights else 1.0000001), ",
    ),
    Mutant(_A, "weights always returned", "weights if need_weights else None", "weights"),
    Mutant(_A, "mask or lengths, not both", "else mask & real", "else mask | real"),
    Mutant(_A, "lengths replace the mask", "real if mask is None else mask & real", "real"),
    Mutant(_A, "causal replaces the mask", "mask = mask & past", "mask = past"),
    Mutant(
        _A,
        "causal corner ignored",
        "corner=corner_of(causal, T_dec, T_enc)",
        'corner="top_left"',
    ),
    Mutant(
        _A,
        "projections of key and value swapped",
        "for W in (W_k, W_v))",
        "for W in (W_v, W_k))",
    ),
    Mutant(
        _P, "lengths off by one", "positions < xp.expand_dims", "positions <= xp.expand_dims"
    ),
    Mutant(_P, "causal off by one", "key <= query + shift", "key < query + shift"),
    Mutant(_P, "causal sees the future", "key <= query + shift", "key >= query + shift"),
    Mutant(_P, "bottom right counted the other way", "T_enc - T_dec if", "T_dec - T_enc if"),
    Mutant(_P, "window off by one on the left", "key >= query - left", "key > query - left"),
    Mutant(_P, "window sides swapped", "key <= query + right", "key <= query + left"),
    Mutant(_P, "a length above T_enc accepted", "| (key_lengths > T_enc)", ""),
    Mutant(_D, "PyTorch's polarity kept", "        return ~mask\n", "        return mask\n"),
    Mutant(
        _H,
        "heads scrambled by a reshape",
        "cut = xp.reshape(x, (*batch, T, heads, d_head))\n    return xp.moveaxis(cut, -2, -3)",
        "return xp.reshape(x, (*batch, heads, T, d_head))",
    ),
    Mutant(_H, "heads merged without exchanging axes", "xp.moveaxis(x, -3, -2)", "x"),
    Mutant(
        _H,
        "weights averaged over heads",
        "xp.stack(weights, axis=-3)",
        "xp.mean(xp.stack(weights, axis=-3), axis=-3, keepdims=True)",
    ),
    Mutant(
        _H, "heads at the wrong axis of the weights", "weights, axis=-3)", "weights, axis=-2)"
    ),
    Mutant(
        _H,
        "every head has the first one's parameters",
        "parameter[head, ...]",
        "parameter[0, ...]",
    ),
    Mutant(
        _H,
        "every head has the first one's mask",
        "given[..., head, :, :]",
        "given[..., 0, :, :]",
    ),
    Mutant(_H, "every head reads the first slice", "head * size : (head + 1) * size", ":size"),
    Mutant(_H, "output projection left out", "if W_o is not None", "if False"),
    Mutant(_H, "heads joined in reverse", "xp.concat(contexts, ", "xp.concat(contexts[::-1], "),
    Mutant(
        _H,
        "padding projected before it is cleared",
        "asking, found = clear_unused(query, key, anyone)",
        "asking, found = query, key",
    ),
    Mutant(_H, "a mask for other heads accepted", "given.shape[-3] != heads", "False"),
    Mutant(_T, "a step ignores its mask", "xp.expand_dims(mask, axis=-2)", "None"),
    Mutant(_T, "a step on lists ignores its mask", "None if mask is None else [mask]", "None"),
    Mutant(
        "sparse.py",
        "sparsemax counts one key too few",
        "1 + k * ordered > total",
        "k * ordered > total",
    ),
    Mutant(
        "sparse.py",
        "entmax not squared",
        "xp.clip(above, 0.0, None) ** 2",
        "xp.clip(above, 0.0, None)",
    ),
    Mutant(
        "sparse.py",
        "sparse weights forget the mask",
        "may = may if mask is None else may & mask",
        "may = may",
    ),
    Mutant("local.py", "Gaussian too wide", "(D / 2)) ** 2) / 2", "D) ** 2) / 2"),
    Mutant("local.py", "window off by one", "T_enc)) <= D", "T_enc)) < D"),
    Mutant(
        "local.py",
        "positions not scaled by the length",
        "share * xp.expand_dims",
        "share + 0 * xp.expand_dims",
    ),
    Mutant("location.py", "filters not reversed", "xp.flip(F, axis=-1)", "F"),
    Mutant(
        "coverage.py",
        "coverage counts the step itself",
        "weights[..., :-1, :]",
        "weights[..., 1:, :]",
    ),
]


def source(mutant: Mutant) -> Path:
    """Return the file a mutant edits."""
    return ROOT / "src" / "regard" / "attention" / mutant.file


def try_out(mutant: Mutant, folder: Path) -> dict[str, str | float]:
    """Run the tests on a copy of the package that has the defect."""
    copy = folder / "src"
    shutil.rmtree(copy, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.gz")
    shutil.copytree(ROOT / "src", copy, ignore=ignored)
    edited = copy / "regard" / "attention" / mutant.file
    edited.write_text(source(mutant).read_text().replace(mutant.old, mutant.new, 1))
    began = time.monotonic()
    for tests in ROUNDS:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        if ran.returncode:
            break
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, flags=re.MULTILINE)
    noticed = found.group(1).removeprefix(str(ROOT) + "/") if found else ""
    if ran.returncode and not found:
        noticed = "the tests could not even be collected"
    return {
        "file": mutant.file,
        "defect": mutant.defect,
        "result": "killed" if ran.returncode else "survived",
        "noticed_by": noticed,
        "seconds": round(time.monotonic() - began, 1),
    }


def merged(new: list[dict[str, str | float]]) -> list[dict[str, str | float]]:
    """Return the committed results with the new ones in their places."""
    old = json.loads(RESULT.read_text()) if RESULT.exists() else []
    by_name = {(row["file"], row["defect"]): row for row in [*old, *new]}
    names = [(mutant.file, mutant.defect) for mutant in MUTANTS]
    return [by_name[name] for name in names if name in by_name]


def page(results: list[dict[str, str | float]]) -> str:
    """Return the page for the docs."""
    killed = sum(row["result"] == "killed" for row in results)
    lines = [
        "# Planted defects",
        "",
        "Generated by `benchmarks/mutants.py`; do not edit. Each row is a defect planted in a",
        "copy of `attention/`, and the first test that noticed it.",
        "",
        f"**{killed} of {len(results)} noticed.**",
        "",
        "| file | defect | result | noticed by |",
        "|---|---|---|---|",
    ]
    for row in results:
        test = str(row["noticed_by"]).replace("|", "\\|")
        lines.append(f"| `{row['file']}` | {row['defect']} | {row['result']} | `{test}` |")
    return "\n".join(lines) + "\n"


def check() -> int:
    """Say whether every edit applies and the page matches the results."""
    wrong = [m for m in MUTANTS if source(m).read_text().count(m.old) < 1]
    for mutant in wrong:
        print(f"{mutant.file}: nothing to edit for: {mutant.defect}", file=sys.stderr)
    if not RESULT.exists() or page(json.loads(RESULT.read_text())) != PAGE.read_text():
        print("docs/mutants.md does not match docs/results/mutants.json", file=sys.stderr)
        return 1
    return int(bool(wrong))


def main() -> int:
    """Run the mutants and write what came of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only mutants whose file or defect has this")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        return check()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for mutant in MUTANTS:
            if options.only not in mutant.file + mutant.defect:
                continue
            assert mutant.old in source(mutant).read_text(), mutant
            row = try_out(mutant, Path(folder))
            results.append(row)
            print(
                f"{row['result']:<9} {mutant.file:<18} {mutant.defect:<45} {row['noticed_by']}",
                flush=True,
            )
    if not options.dry:
        results = merged(results)
        RESULT.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text(page(results))
    return int(any(row["result"] == "survived" for row in results))


if __name__ == "__main__":
    sys.exit(main())
