"""Follow every link of the built site; external ones only with `--external`.

A page that opens from disk may load nothing from elsewhere, so that is looked at, too::

    python docs/links.py docs/_build/html
"""

import argparse
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
_ANYWHERE = {"canonical", "search", "author", "next", "prev", "index"}  # of <link>, not loaded
_PATIENCE = 20.0  # seconds


class _Page(HTMLParser):
    """The anchors of a page, where it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        wanted = _LOADS.get(tag)
        if wanted in given and given.get("rel", "") not in _ANYWHERE:
            self.loads.append(given[wanted])


def broken(folder: Path) -> Iterator[str]:
    """Say what is wrong inside the site."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    for path, page in sorted(pages.items()):
        shown = path.relative_to(folder)
        for address in page.loads:
            if urllib.parse.urlsplit(address).scheme not in {"", "data"}:
                yield f"{shown} loads {address}"
        for address in (*page.links, *page.loads):
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else path.parent / urllib.parse.unquote(parts.path)
            target = target.resolve()
            if not target.exists():
                yield f"{shown} links to {address}, which is not there"
            elif (
                parts.fragment
                and target in pages
                and urllib.parse.unquote(parts.fragment) not in pages[target].anchors
            ):
                yield f"{shown} links to {address}, which has no such place"
    for path in folder.rglob("*.css"):
        for address in re.findall(
            r"(?:@import|url\()\s*[\"']?(https?:[^\"')]*)", path.read_text()
        ):
            yield f"{path.relative_to(folder)} loads {address}"


def unreachable(folder: Path) -> Iterator[str]:
    """Ask every address outside the site once, and say which do not answer."""
    asked: dict[str, str] = {}
    for path in sorted(folder.rglob("*.html")):
        for address in _Page(path.read_text(encoding="utf-8")).links:
            if address.startswith("http"):
                asked.setdefault(address.partition("#")[0], str(path.relative_to(folder)))
    for address, page in asked.items():
        request = urllib.request.Request(
            address, method="HEAD", headers={"User-Agent": "regard"}
        )
        try:
            urllib.request.urlopen(request, timeout=_PATIENCE).close()
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            yield f"{page} links to {address}: {error}"


def main() -> int:
    """Check, and list what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--external", action="store_true")
    given = parser.parse_args()
    found = list(broken(given.folder.resolve()))
    if given.external:
        found += unreachable(given.folder.resolve())
    print("\n".join(found) or "every link leads somewhere", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
