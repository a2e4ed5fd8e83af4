"""Data that ship with regard: three files with one name, and their licence beside them."""

from importlib.resources import as_file, files

from regard.seq2seq.pairs import Pairs, read_pairs
from regard.seq2seq.recipes.recipe import Parts

__all__ = ["shipped"]


def shipped(name: str) -> Parts:
    """Read ``data/NAME.{train,dev,test}.tsv.gz``; what they are is said in ``LICENSE.NAME``."""
    return Parts(*(_read(f"{name}.{part}") for part in Parts._fields))


def _read(name: str) -> Pairs:
    data = files("regard.seq2seq.recipes") / "data" / f"{name}.tsv.gz"
    with as_file(data) as path:
        pairs = read_pairs(path)
    # Where the package lies is of no interest to the model that is made of it.
    return Pairs(pairs.items, name, pairs.sha256)
