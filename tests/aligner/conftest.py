from pathlib import Path

import pytest

from regard.aligner.corpus import read_pairs
from regard.alignment.link_files import read_links

EXAMPLE = Path(__file__).parents[2] / "examples" / "align"


@pytest.fixture(scope="session")
def example():
    """Sixty sentence pairs and their gold links."""
    gold = read_links(EXAMPLE / "gold.txt", base=0).sentences
    return read_pairs(EXAMPLE / "corpus.tsv"), gold
