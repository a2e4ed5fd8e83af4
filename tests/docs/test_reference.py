"""Every public name is documented, with shapes, errors and source, and has its place."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def extensions():
    """Import the site's own extensions as Sphinx does."""
    pytest.importorskip("torch", reason="the reference documents PyTorch modules")
    sys.path.insert(0, str(DOCS / "extensions"))
    import documented
    import public

    yield public, documented
    sys.path.remove(str(DOCS / "extensions"))


def test_no_public_name_is_without_its_documentation(extensions):
    public, documented = extensions
    lacking = [fault for page in public.PAGES for fault in documented.missing(page)]
    assert lacking == []


def test_the_checker_finds_what_is_missing(extensions):
    _, documented = extensions

    def bare(scores, mask):
        """Return weights.

        Parameters
        ----------
        scores : (T_enc,)
        """
        raise ValueError(mask)

    assert list(documented._of_function(bare, set())) == [
        "parameter `mask`",
        "does not say what it raises",
    ]

    class Bare:
        """A class."""

        def __init__(self, size: int) -> None:
            self.size = size

        def act(self) -> None:
            pass

    assert list(documented._of_class(Bare)) == [
        "parameter `size`",
        "method `act` has no docstring",
    ]


def test_every_name_of_import_regard_has_a_place_in_the_reference(extensions):
    import regard

    public, _ = extensions
    homes = {id(found) for page in public.PAGES for _, _, found in public.public(page)}
    modules = [module.name for page in public.PAGES for module in page.modules]
    for name in regard.__all__:
        found = getattr(regard, name)
        if name.startswith("_"):
            continue
        home = getattr(found, "__name__", "")
        assert id(found) in homes or any(each.startswith(home) for each in modules), name
