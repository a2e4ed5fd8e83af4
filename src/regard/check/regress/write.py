"""A regression test for a finding, kept only if it was seen to fail before the repair."""

import ast
import keyword
import os
import sys
import types
from dataclasses import dataclass
from typing import Any

from regard.check.contract import Contract
from regard.check.finding import Finding
from regard.check.regress.claims import Claim, claims, pinned
from regard.check.regress.given import Given
from regard.check.sizes import Sizes
from regard.check.subject import Loaded, TookTooLong, limit, quiet

__all__ = ["RegressionTest", "write_test"]


@dataclass(frozen=True)
class RegressionTest:
    """The text of a test file, and what running it showed.

    ``fails_before`` counts the test functions that fail on the code as it is;
    ``passes_after`` says whether all pass on the repaired text, None where there is none.
    """

    text: str
    fails_before: int
    passes_after: bool | None


def write_test(
    loaded: Loaded,
    contract: Contract,
    finding: Finding,
    repaired: str | None = None,
    *,
    date: str = "",
) -> RegressionTest | None:
    """Write a pytest file that fails on the code as it is and passes once it is right.

    Parameters
    ----------
    loaded : Loaded
        The code as it is.
    contract : Contract
        What it should keep.
    finding : Finding
        The cause that the test guards against; names the rule in the header.
    repaired : str, optional
        The text after a proven fix: every test must pass on it.
    date : str
        For the header, such as ``"2026-11-30"``.

    Returns
    -------
    test : RegressionTest or None
        None where no claim that stands alone tells the bug from the repair.
    """
    given = Given(contract, Sizes(0, contract.sizes), loaded.library)
    module = _module_name(loaded.path)
    kept: list[Claim] = []
    failing = 0
    for claim in claims(given):
        text = _file(loaded, given, finding, module, [claim], date)
        if repaired is not None and not _passes(text, module, repaired, loaded.path):
            continue  # no true statement about the repaired code: our claim is too strong
        tells = not _passes(text, module, loaded.source, loaded.path)
        if tells or claim.always:
            kept.append(claim)
            failing += tells
    if not failing and repaired is not None:
        pin = _pin(loaded, given, finding, module, repaired, date)
        if pin is not None:
            kept.append(pin)
            failing = 1
    if not failing:
        return None
    text = _file(loaded, given, finding, module, kept, date)
    after = None if repaired is None else _passes(text, module, repaired, loaded.path)
    return RegressionTest(text, failing, after)


def _pin(  # noqa: PLR0917 - the parts of a file
    loaded: Loaded, given: Given, finding: Finding, module: str, repaired: str, date: str
) -> Claim | None:
    """Numbers of the repaired code: the last resort, where no plain claim sees the bug."""
    text = _file(loaded, given, finding, module, [], date)
    scope = _scope(text, module, repaired, loaded.path)
    if scope is None:
        return None
    try:
        outputs = scope["run"](scope["inputs"]())
        arrays = tuple(scope["numbers"](o) for o in outputs)
    except Exception:
        return None
    claim = pinned(given, arrays)
    told = _file(loaded, given, finding, module, [claim], date)
    right = _passes(told, module, repaired, loaded.path)
    return claim if right and not _passes(told, module, loaded.source, loaded.path) else None


def _file(  # noqa: PLR0917 - the parts of a file
    loaded: Loaded,
    given: Given,
    finding: Finding,
    module: str,
    kept: list[Claim],
    date: str,
) -> str:
    owner = loaded.entry.split(".")[0]
    when = f", {date}" if date else ""
    where = os.path.basename(loaded.path)
    body = "\n\n\n".join(claim.text() for claim in kept)
    library = ["import torch"] if given.torch else []
    shown = ", ".join(
        f"{n}={s}" for n, s in given.sizes.shown(given.contract.every_axis).items()
    )
    parts = [
        f'"""{finding.name} ({finding.code}) must not come back in {where}{when}.\n\n'
        f"{_sentence(finding.message)}\n"
        f"Sizes, all different so that no swapped axis hides: {shown}.\n"
        '"""',
        "\n".join(["import numpy as np", *library, "", f"from {module} import {owner}"]),
        _build(loaded, given),
        given.text(),
        _run(given),
        body,
    ]
    return "\n\n\n".join(parts) + "\n"


def _build(loaded: Loaded, given: Given) -> str:
    owner, *method = loaded.entry.split(".")
    if not isinstance(getattr(loaded.module, owner), type):
        return f"def build():\n    return {owner}"
    init = ", ".join(f"{k}={given.sizes.value(v)!r}" for k, v in given.contract.init.items())
    lines = ["def build():"]
    if not given.torch:
        lines.append(f"    made = {owner}({init})")
    else:
        lines.append("    torch.manual_seed(0)")
        kind = given.contract.dtype
        cast = "" if kind == "float32" else f".to(torch.{kind})"
        train = "train" if given.contract.mode == "train" else "eval"
        lines.append(f"    made = {owner}({init}){cast}.{train}()")
    lines.append(f"    return made.{method[0]}" if method else "    return made")
    return "\n".join(lines)


def _run(given: Given) -> str:
    lines = ["def run(given, built=None):", "    built = build() if built is None else built"]
    call = "built(**given)"
    if given.torch:
        lines += ["    with torch.no_grad():", f"        outputs = {call}"]
    else:
        lines.append(f"    outputs = {call}")
    lines += [
        "    return outputs if isinstance(outputs, tuple) else (outputs,)",
        "",
        "",
        "def numbers(x):",
        "    return np.asarray(x.double() if hasattr(x, 'double') else x, dtype=float)",
        "",
        "",
        "def same(a, b):",
        "    return np.allclose(numbers(a), numbers(b), rtol=1e-4, atol="
        + ("2e-2" if given.contract.dtype in ("float16", "bfloat16") else "1e-5")
        + ")",
    ]
    return "\n".join(lines)


def _passes(text: str, module: str, source: str, path: str) -> bool:
    """Run every test function of a text against a module's text."""
    try:
        with limit(5.0):
            scope = _scope(text, module, source, path)
            if scope is None:
                return False
            for name, function in list(scope.items()):
                if name.startswith("test_") and callable(function):
                    with quiet():
                        function()
    except (Exception, TookTooLong, SystemExit):
        return False
    return True


def _scope(text: str, module: str, source: str, path: str) -> dict[str, Any] | None:
    """Execute a test's text while a module's text stands for the user's module."""
    before = sys.modules.get(module)
    stand_in = types.ModuleType(module)
    stand_in.__file__ = path
    scope: dict[str, Any] = {"__name__": "regard_written_test"}
    try:
        sys.modules[module] = stand_in
        with quiet():
            exec(compile(source, path, "exec", dont_inherit=True), stand_in.__dict__)
            exec(compile(text, "<written test>", "exec"), scope)
    except (Exception, SystemExit):
        return None
    finally:
        if before is None:
            sys.modules.pop(module, None)
        else:
            sys.modules[module] = before
    return scope


def _module_name(path: str) -> str:
    stem = os.path.splitext(os.path.basename(path))[0]
    return stem if stem.isidentifier() and not keyword.iskeyword(stem) else "subject"


def _sentence(message: str) -> str:
    text = message.strip()
    safe = ast.unparse(ast.Constant(text))[1:-1].replace('"', "'")
    return safe[:1].upper() + safe[1:] + "."
