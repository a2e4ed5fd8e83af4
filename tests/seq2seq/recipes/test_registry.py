import pytest

from regard.errors import InputError
from regard.seq2seq.job import describe
from regard.seq2seq.metrics import ErrorRates, error_rates
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.recipes import copy_pairs, inflection, sigmorphon_g2p
from regard.seq2seq.recipes.beside import beside
from regard.seq2seq.recipes.recipe import Parts
from regard.seq2seq.recipes.registry import NAMES, find, variants

EVERY = [(name, language) for name in NAMES for language in variants(name) or (None,)]
SHIPPED = [("copy", None), ("g2p", None), ("names", None), ("translate", None)]


def _overlap(one: Pairs, other: Pairs, side: int) -> set[str]:
    return {item[side] for item in one.items} & {item[side] for item in other.items}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """Three examples of each part in the layouts that the archives have."""
    root = tmp_path_factory.mktemp("data")
    for language in sigmorphon_g2p.LANGUAGES:
        for part in Parts._fields:
            lines = [f"{part}{i}é\tp a{i}\n" for i in range(3)]
            (root / f"{language}_{part}.tsv").write_text("".join(lines), encoding="utf-8")
    for language in inflection.LANGUAGES:
        for part in Parts._fields:
            lines = [f"{part}{i}\tpos=N,num=PL\t{part}{i}s\n" for i in range(3)]
            (root / f"{language}-task1-{part}").write_text("".join(lines), encoding="utf-8")
    return root


@pytest.mark.parametrize(("name", "language"), SHIPPED)
def test_no_source_of_a_shipped_recipe_is_in_two_parts(name, language):
    parts = find(name, language=language).load()
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not _overlap(parts[one], parts[other], 0)


def test_no_sentence_of_either_language_is_in_two_parts():
    parts = find("translate").load()
    assert [len(part) for part in parts] == [45_423, 1112, 1099]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not _overlap(parts[one], parts[other], 1)


def test_the_names_are_those_that_were_published_but_for_what_two_parts_shared():
    assert [len(part) for part in find("names").load()] == [12_873, 1430, 1590]


def test_words_to_copy_are_the_same_every_time_and_of_every_length():
    first, again = copy_pairs.draw(), copy_pairs.draw()
    assert first == again
    assert all(source == target for part in first for source, target in part.items)
    assert {len(source) for source, _ in first.train.items} == set(range(1, 21))


@pytest.mark.parametrize(("name", "language"), EVERY)
def test_every_recipe_has_settings_that_make_a_model(name, language, data_dir):
    recipe = find(name, language=language, data_dir=data_dir)
    ships = language in (None, "eng")  # and is large
    train = Pairs((("ab", "c d"),)) if ships else recipe.load().train
    settings = recipe.job(7.0, 5)
    assert settings.train.time_budget == 7.0
    assert settings.train.seed == 5
    assert describe(train, settings).model.attention == "bahdanau"


def test_features_are_symbols_before_the_lemma(data_dir):
    recipe = find("inflection", language="german", data_dir=data_dir)
    parts = recipe.load()
    assert parts.train.items[1] == ("train1\tpos=N,num=PL", "train1s")
    assert parts.train.features


def test_korean_syllables_are_taken_apart(tmp_path):
    for part in Parts._fields:
        (tmp_path / f"kor_{part}.tsv").write_text("각\tk a k\n", encoding="utf-8")
    recipe = find("g2p", language="kor", data_dir=tmp_path)
    parts = recipe.load()
    assert len(parts.train.items[0][0]) == 3
    vocab = describe(parts.train, recipe.job(7.0, 0)).source
    assert vocab.encode("각") == [vocab.encode(sign)[0] for sign in "\u1100\u1161\u11a8"]


@pytest.mark.parametrize(
    ("name", "language", "said"),
    [
        ("speech", None, "no such recipe"),
        ("g2p", "tlh", "no language 'tlh'"),
        ("inflection", None, "needs --language"),
        ("inflection", "tlh", "no language 'tlh'"),
        ("names", "ara", "has no --language"),
    ],
)
def test_what_there_is_no_recipe_for_is_refused(name, language, said):
    with pytest.raises(InputError, match=said):
        find(name, language=language)


def test_the_published_means_are_those_of_the_table():
    of = {
        lang: sigmorphon_g2p.recipe(lang, None).published for lang in sigmorphon_g2p.LANGUAGES
    }
    for measure in ("WER", "PER"):
        each = [
            next(p for p in rows if p.system == sigmorphon_g2p.MACRO.system).values[measure]
            for rows in of.values()
        ]
        assert sum(each) / len(each) == pytest.approx(
            sigmorphon_g2p.MACRO.values[measure], abs=0.005
        )


def test_a_result_stands_beside_the_published_ones_with_their_source():
    recipe = find("g2p", language="fre")
    text = beside(recipe, ErrorRates(24, 1000, 27, 450, 976))
    lines = text.splitlines()
    assert "450 sources, one is 0.22 points" in lines[0]
    assert lines[1].split() == ["WER", "PER"]
    assert lines[2].split() == ["this", "model", "6.00", "2.40"]
    lstm = next(line for line in lines if line.strip().startswith("LSTM"))
    assert "6.22     1.32  Gorman et al. 2020" in lstm
    best = next(line for line in lines if line.strip().startswith("best entry"))
    assert best.split()[2:4] == ["5.11", "-"]


def test_where_nothing_was_published_it_is_said():
    text = beside(find("names"), error_rates(["ab"], [["ac"]]), system="three seeds")
    assert text.splitlines()[2].split() == ["three", "seeds", "50.00", "100.00"]
    assert "no published result" in text
