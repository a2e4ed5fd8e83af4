"""All recipes by name: ``regard train NAME``."""

from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.recipes import (
    copy_pairs,
    g2p,
    inflection,
    names,
    sigmorphon_g2p,
    translation,
)
from regard.seq2seq.recipes.recipe import Recipe

__all__ = ["NAMES", "find", "variants"]

NAMES = ("copy", "g2p", "inflection", "names", "translate")
"""What a recipe is asked for by."""

_VARIANTS = {
    "copy": (),
    "g2p": ("eng", *sigmorphon_g2p.LANGUAGES),
    "inflection": inflection.LANGUAGES,
    "names": (),
    "translate": (),
}
_ONE = {"copy": copy_pairs.recipe, "names": names.recipe, "translate": translation.recipe}


def variants(name: str) -> tuple[str, ...]:
    """Return the languages of a recipe, the default first; none if there is no choice.

    Raises
    ------
    InputError
        There is no such recipe.
    """
    if name not in _VARIANTS:
        raise InputError(
            explain("there is no such recipe", expected=", ".join(NAMES), got=repr(name))
        )
    return _VARIANTS[name]


def find(
    name: str, *, language: str | None = None, data_dir: str | Path | None = None
) -> Recipe:
    """Return a recipe; its data are read when they are asked for.

    Parameters
    ----------
    name : str
        One of :data:`NAMES`.
    language : str, optional
        One of :func:`variants`. ``g2p`` without it is English, which ships with regard;
        ``inflection`` has to be told.
    data_dir : path, optional
        Where the data of a recipe that does not ship are.

    Raises
    ------
    InputError
        There is no such recipe or language, or the language is missing or of no use.
    """
    languages = variants(name)
    if name in _ONE:
        if language is not None:
            raise _no_language(name, "none: the recipe has one data set", language)
        return _ONE[name]()
    if name == "g2p":
        if language in (None, "eng"):
            return g2p.recipe()
        return sigmorphon_g2p.recipe(str(language), data_dir)
    if language is None:
        raise _no_language(name, ", ".join(languages), None)
    return inflection.recipe(language, data_dir)


def _no_language(name: str, expected: str, got: str | None) -> InputError:
    return InputError(
        explain(
            f"the recipe `{name}` "
            + ("needs --language" if got is None else "has no --language"),
            expected=expected,
            got="none" if got is None else repr(got),
        )
    )
