import pytest

from regard.errors import InputError
from regard.seq2seq.pairs import read_pairs
from regard.seq2seq.reading.columns import Columns, column


def test_columns_are_counted_from_1_and_the_source_comes_first_in_the_pair(write):
    path = write("x\tB\tb\nx\tA\ta\n")
    assert read_pairs(path, columns=Columns(3, 2)).items == (("b", "B"), ("a", "A"))


def test_features_stand_behind_the_source_wherever_their_column_is(write):
    path = write("Baum\tN;PL\tBäume\nEi\tN;SG\tEi\n")
    pairs = read_pairs(path, columns=Columns(target=3, features=2))
    assert pairs.items == (("Baum\tN;PL", "Bäume"), ("Ei\tN;SG", "Ei"))
    assert pairs.features
    kept, held = pairs.split(1)
    assert kept.features
    assert held.features


def test_several_feature_columns_are_joined(write):
    path = write("a\tN\tPL\tb\n")
    pairs = read_pairs(path, columns=Columns(target=4, features=(3, 2)))
    assert pairs.items == (("a\tPL;N", "b"),)


def test_of_several_target_columns_each_that_is_filled_is_a_reference(write):
    path = write("a\tA\tB\nb\t\tC\n")
    pairs = read_pairs(path, columns=Columns(target=(2, 3)))
    assert pairs.references() == {"a": ("A", "B"), "b": ("C",)}


def test_a_named_column_makes_the_first_line_a_header(write):
    path = write("\ufeffid\tIPA\tWord\n7\tA\ta\n")
    pairs = read_pairs(path, columns=Columns("Word", "IPA"))
    assert pairs.items == (("a", "A"),)


def test_numbers_with_a_header_pass_it_over(write):
    path = write("word\tpron\na\tA\n")
    assert read_pairs(path, columns=Columns(header=True)).items == (("a", "A"),)


def test_what_looks_like_a_header_is_refused_until_someone_says_what_it_is(write):
    path = write("Word\tPron\na\tA\n")
    with pytest.raises(InputError, match=r"line 1: this looks like a header(.|\n)*--no-header"):
        read_pairs(path)
    pairs = read_pairs(path, columns=Columns(header=False))
    assert pairs.items == (("Word", "Pron"), ("a", "A"))


@pytest.mark.parametrize("first", ["word\tW ER D\n", "word\tword\n", "the\tpron\n"])
def test_a_pair_with_the_name_of_one_column_is_a_pair(write, first):
    assert len(read_pairs(write(first + "a\tA\n"))) == 2


BAD = {
    "no such number": ("a\tA\n", Columns(target=3), ["line 1", "no column 3", "2 columns"]),
    "no such name": (
        "lema\tform\na\tA\n",
        Columns("lemma", "form"),
        ["line 1", "no column 'lemma'", "'lema', 'form'", "did you mean 'lema'"],
    ),
    "a name twice": (
        "a\ta\tb\n",
        Columns("a", "b"),
        ["line 1", "2 columns 'a'", "choose another name"],
    ),
    "one column, two parts": (
        "a\tb\nc\td\n",
        Columns(1, "a"),
        ["line 1", "column 1 has two parts"],
    ),
    "another width": (
        "a\tA\tN\nb\tB\n",
        Columns(features=3),
        ["line 2", "2 columns, not 3", "as line 1 has"],
    ),
    "no features": ("a\tA\t \n", Columns(features=3), ["line 1", "the features are empty"]),
    "only a header": ("a\tA\n", Columns(header=True), ["there is no pair"]),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_a_file_without_the_columns_is_refused_with_the_line(write, case):
    data, columns, said = BAD[case]
    with pytest.raises(InputError) as caught:
        read_pairs(write(data), columns=columns)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": 0},
        {"source": True},
        {"target": ""},
        {"features": -1},
        {"target": (2, 0)},
        {"source": (1, 2)},
        {"source": 2, "target": 2},
        {"target": (3, 3)},
        {"source": "word", "header": False},
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(arguments):
    with pytest.raises(InputError, match=r"Columns\(\)"):
        Columns(**arguments)


def test_digits_are_a_number_and_all_else_is_a_name():
    assert [column(text) for text in ("3", "word", "3a", "\u00b2", "")] == [
        3,
        "word",
        "3a",
        "\u00b2",
        "",
    ]


def test_the_json_form_gives_the_same_choice_back():
    columns = Columns("word", ("a", "b"), features=3, header=True)
    assert Columns.from_json(columns.to_json()) == columns
    for form in (None, {}, {**columns.to_json(), "target": [None]}, {"source": 1}):
        with pytest.raises(InputError):
            Columns.from_json(form)
