"""Writes the pages of the reference: a heading a module, its names below, and an index."""

import importlib
import inspect
from pathlib import Path
from typing import Any

from public import PAGES, Module, Page

__all__ = ["setup"]

_NOT_INSTALLED = "``{}`` is not shown: {} is not installed where this page was made."


def _index() -> str:
    rows = ["# Reference", "", "| page | what is on it |", "|---|---|"]
    rows += [f"| [{page.title}]({page.name}.rst) | {page.told} |" for page in PAGES]
    rows += ["", "## The names of `import regard`", "", "| name | what it is |", "|---|---|"]
    regard = importlib.import_module("regard")
    for name in regard.__all__:
        found = getattr(regard, name)
        if name.startswith("_"):
            continue
        if inspect.ismodule(found):
            target = "check.rst" if name == "check" else f"{_page_of(found.__name__)}.rst"
            shown = f"[`regard.{name}`]({target})"
        else:
            role = "class" if inspect.isclass(found) else "func"
            home = f"{found.__module__}.{found.__qualname__}"
            shown = f"{{py:{role}}}`regard.{name} <{home}>`"
        rows.append(f"| {shown} | {_summary(found)} |")
    listed = "\n".join(page.name for page in PAGES)
    return "\n".join([*rows, "", f"```{{toctree}}\n:hidden:\n\n{listed}\n```", ""])


def _page_of(module: str) -> str:
    for page in PAGES:
        if any(
            each.name == module or each.name.startswith(module + ".") for each in page.modules
        ):
            return page.name
    raise LookupError(f"no page of the reference has {module}")


def _page(page: Page) -> str:
    parts = [page.title, "=" * len(page.title), "", page.told.replace("`", "``"), ""]
    for module in page.modules:
        parts += _module(module)
    return "\n".join(parts)


def _module(module: Module) -> list[str]:
    head = f"``{module.name}``"
    lines = [head, "-" * len(head), ""]
    try:
        names = module.public()
    except ImportError as error:
        return [*lines, _NOT_INSTALLED.format(module.name, error.name), ""]
    lines += [f".. automodule:: {module.name}", "   :no-members:", ""]
    loaded = importlib.import_module(module.name)
    for name in names:
        found = getattr(loaded, name)
        if inspect.isclass(found):
            lines += [f".. autoclass:: {module.name}.{name}", *_members(found)]
        elif callable(found):
            lines += [f".. autofunction:: {module.name}.{name}"]
        else:
            lines += [f".. autodata:: {module.name}.{name}", "   :no-value:"]
        lines.append("")
    return lines


def _members(found: type) -> list[str]:
    """Return the options of a class: its own methods, but for what PyTorch's modules have."""
    own = [
        name
        for name, value in vars(found).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property | classmethod))
        and inspect.getdoc(value)
    ]
    return [f"   :members: {', '.join(own)}"] if own else []


def _summary(found: Any) -> str:
    text = inspect.getdoc(found) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def _write(app: Any) -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    texts = {"index.md": _index(), **{f"{page.name}.rst": _page(page) for page in PAGES}}
    for name, text in texts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Write the pages before Sphinx looks for them."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
