"""Make the small data sets that ship with the recipes from the public files they come from.

Run it as ``python benchmarks/recipe_data.py --translate fra-eng.zip --names DIRECTORY``.

``--translate`` is the archive of French-English sentence pairs of manythings.org (file of
2017-09-29). Kept are pairs of at most 7 English and 9 French tokens whose every word is in at
least 5 of the kept sentences of its language. Text is brought to Unicode form C and to lower
case, the typographic apostrophe becomes the plain one, and tokens are words, with the
apostrophe that ends an elided one, and single punctuation marks. Pairs that share a sentence of
either language stay together, so no sentence of one part, French or English, is in another.

``--names`` is the directory of ``ar2en-{train,eval,test}.tsv``; the files are compressed, their
content is not changed.

The result is the same to the byte wherever it is made (with the same zlib).
"""

import argparse
import gzip
import random
import re
import unicodedata
import zipfile
from collections import Counter
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "src/regard/seq2seq/recipes/data"
TOKEN = re.compile(r"\w+(?:-\w+)*'?|[^\w\s]")
LONGEST = (9, 7)  # French, English
FEWEST = 5
HELD_OUT = 1000  # French sentences in each of dev and test

Pair = tuple[str, str]


def tokens(text: str) -> str:
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").lower()
    return " ".join(TOKEN.findall(plain))


def kept(pairs: list[Pair]) -> list[Pair]:
    """Drop long pairs, then those with rare words until no word is rare."""
    pairs = [
        pair
        for pair in pairs
        if all(0 < len(t.split()) <= n for t, n in zip(pair, LONGEST, strict=True))
    ]
    while True:
        often = [
            Counter(word for text in set(side) for word in set(text.split()))
            for side in zip(*pairs, strict=True)
        ]
        fewer = [
            pair
            for pair in pairs
            if all(
                count[word] >= FEWEST
                for count, text in zip(often, pair, strict=True)
                for word in text.split()
            )
        ]
        if len(fewer) == len(pairs):
            return pairs
        pairs = fewer


def families(pairs: list[Pair]) -> list[list[Pair]]:
    """Group the pairs that are joined by common sentences."""
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for french, english in pairs:
        parent[root((0, french))] = root((1, english))
    found: dict[tuple[int, str], list[Pair]] = {}
    for pair in pairs:
        found.setdefault(root((0, pair[0])), []).append(pair)
    return list(found.values())


def translate(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        lines = opened.read("fra.txt").decode("utf-8").splitlines()
    pairs = [tuple(map(tokens, line.split("\t")[1::-1])) for line in lines]
    grouped = families(kept(list(dict.fromkeys(pairs))))  # type: ignore[arg-type]
    random.Random("translate").shuffle(grouped)
    parts: dict[str, list[Pair]] = {"test": [], "dev": [], "train": []}
    for family in grouped:
        for part, held in parts.items():
            if part == "train" or len({french for french, _ in held}) < HELD_OUT:
                held.extend(family)
                break
    for part, held in parts.items():
        text = "".join(f"{french}\t{english}\n" for french, english in sorted(held))
        write(f"tatoeba-fra-eng.{part}.tsv.gz", text.encode("utf-8"))
        print(part, len(held), "pairs,", len({f for f, _ in held}), "French sentences")


def names(directory: Path) -> None:
    for part, theirs in (("train", "train"), ("dev", "eval"), ("test", "test")):
        write(f"names-ar2en.{part}.tsv.gz", (directory / f"ar2en-{theirs}.tsv").read_bytes())


def write(name: str, content: bytes) -> None:
    (DATA / name).write_bytes(gzip.compress(content, 9, mtime=0))
    print(name, (DATA / name).stat().st_size, "bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--translate", type=Path)
    parser.add_argument("--names", type=Path)
    given = parser.parse_args()
    if given.translate:
        translate(given.translate)
    if given.names:
        names(given.names)
