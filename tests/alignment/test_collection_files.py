import json

import numpy as np
import pytest

from regard.alignment import Alignment
from regard.alignment.collection import Collection
from regard.alignment.collection_files import read_collection, write_collection
from regard.alignment.counterfactual import ByPosition, Counterfactual
from regard.alignment.record import Record
from regard.errors import InputError, RegardError, ShapeError


def weights(*shape):
    drawn = np.random.default_rng(7).uniform(0.1, 1.0, shape)
    return drawn / drawn.sum(axis=-1, keepdims=True)


@pytest.fixture
def collection():
    others = [["a", "b", "c", "d", "猫"]] * 3
    changed = {
        "permute": Counterfactual(["a", "q", "c"], [0.0, 0.75, 1 / 3]),
        "ablate": Counterfactual(
            ["a", "q", ""],
            [0.1, 0.2, 1 / 7],
            unaltered=["x", "猫", " "],
            how="without the largest",
            positions=ByPosition(others, weights(3, 5)),
        ),
    }
    return Collection(
        [
            Record(
                weights(2, 3, 3, 5),
                ["a", "猫", ""],
                ["قطة", " ", "\n", "</script>", "z"],
                name="one",
                model="before",
                layers=(3, 5),
                heads=(0, 7, 2),
                counterfactuals=changed,
                made_by={"seed": 3, "command": "regard"},
            ),
            Record(weights(7, 2), list("abcdefg"), ["u", "v"], name="two"),
        ]
    )


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".npz"])
def test_every_format_reads_back_bit_for_bit(collection, tmp_path, suffix):
    path = write_collection(tmp_path / f"looked{suffix}", collection)
    assert read_collection(path) == collection


def test_an_existing_file_is_only_replaced_when_asked(collection, tmp_path):
    path = tmp_path / "looked.npz"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match="the file exists"):
        write_collection(path, collection)
    assert path.read_bytes() == b"mine"
    write_collection(path, collection, force=True)
    assert read_collection(path) == collection


def test_what_an_alignment_wrote_is_read(tmp_path):
    one = Alignment(weights(3, 5), list("abc"), list("vwxyz"), {"seed": 3})
    (tmp_path / "one.json").write_text(one.to_json())
    (record,) = read_collection(tmp_path / "one.json")
    assert (record.name, record.made_by) == ("1", {"seed": 3})
    assert (record.weights[0, 0] == one.weights).all()


def test_what_predict_prints_is_read_by_what_the_model_read(tmp_path):
    line = {
        "source": "ab",
        "target": "A B",
        "finished": True,
        "source_symbols": ["a", "b", "</s>"],
        "target_symbols": ["A", "B"],
        "weights": [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1]],
    }
    text = json.dumps(line) + "\n\n" + json.dumps(line) + "\n"
    (tmp_path / "out.jsonl").write_text(text)
    first, second = read_collection(tmp_path / "out.jsonl")
    assert (first.source, first.target) == (("a", "b", "</s>"), ("A", "B"))
    assert (first.name, second.name) == ("1", "2")


def test_an_array_of_ones_own_is_named_by_position_or_by_its_tokens(tmp_path):
    np.savez(tmp_path / "own.npz", weights=weights(3, 5))
    (record,) = read_collection(tmp_path / "own.npz")
    assert (record.target, record.source) == (("0", "1", "2"), ("0", "1", "2", "3", "4"))
    tokens = {"target": np.array(list("abc")), "source": np.array(["猫", "w", "x", "y", "z"])}
    np.savez(tmp_path / "own.npz", weights=weights(2, 3, 5).astype("f4"), **tokens)
    (record,) = read_collection(tmp_path / "own.npz")
    assert (record.target, record.source[0]) == (("a", "b", "c"), "猫")
    assert record.weights.shape == (1, 2, 3, 5)


def test_nothing_is_unpickled(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (Bomb.explode, ())

        @staticmethod
        def explode():
            raise AssertionError("a pickle was run")

    np.savez(
        tmp_path / "bad.npz", weights=np.array([{"a": 1}], dtype=object), allow_pickle=True
    )
    with pytest.raises(InputError, match="not unpickled"):
        read_collection(tmp_path / "bad.npz")


GOOD = '{"weights": [[1.0, 0.0]], "target": ["a"], "source": ["x", "y"]}'


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.jsonl", GOOD + "\n\n{", r"a\.jsonl:3: this is malformed"),
        ("a.jsonl", GOOD + "\n" + GOOD.replace("1.0", "0.5"), r"a\.jsonl:2: .*not sum to 1"),
        ("a.jsonl", GOOD + "\n" + GOOD.replace('"y"', '"y", "z"'), r"a\.jsonl:2: .*T_enc"),
        ("a.jsonl", GOOD.replace("1.0", "NaN"), r"a\.jsonl:1: .*not finite"),
        ("a.jsonl", GOOD.replace("1.0, 0.0", "1.5, -0.5"), r"a\.jsonl:1: .*negative"),
        ("a.jsonl", GOOD + "\n[3]", r"a\.jsonl:2: the record has no weights"),
        ("a.json", "{\n\n oops", r"a\.json:3: .*\n.*\n.*line 3, column 2"),
        ("a.json", "[" + GOOD + ", {}]", r"a\.json: record 2: the record has no weights"),
        ("a.json", '{"records": 3}', r"`records`, a list"),
        ("a.json", '{"version": 2, "records": []}', r"another version"),
        ("a.json", "[]", r"no alignment in it"),
        ("a.json", "3", r"the record has no weights"),
        ("a.json", '{"weights": [[1.0]], "target": ["a"]}', r"`source`, a list of tokens"),
        (
            "a.json",
            GOOD[:-1] + ', "counterfactuals": {"ablate": {"target": ["a"], "difference": [0.5],'
            ' "positions": {"target": [["a"]], "difference": [[0.5]]}}}}',
            r"positions of 'ablate' do not fit on axis T_enc",
        ),
        (
            "a.json",
            GOOD[:-1] + ', "counterfactuals": {"ablate": {"target": ["a"], "difference": [0.5],'
            ' "positions": 7}}}',
            r"an object with target and difference",
        ),
        (
            "a.json",
            '{"weights": [[1.0]], "target": "a", "source": ["b"]}',
            r"no list of tokens",
        ),
        ("a.json", GOOD[:-1] + ', "heads": [0, 1]}', r"`heads` does not fit"),
        ("a.json", GOOD[:-1] + ', "heads": 5}', r"`heads` is refused"),
        ("a.json", GOOD[:-1] + ', "made_by": 5}', r"`made_by`"),
        ("a.json", GOOD[:-1] + ', "counterfactuals": []}', r"`counterfactuals`"),
        ("a.json", GOOD[:-1] + ', "counterfactuals": {"permute": 3}}', r"'permute'"),
        ("a.json", f'[{GOOD[:-1]}, "name": "s"}}, {GOOD[:-1]}, "name": "s"}}]', r"one name"),
        ("a.json", "[" * 100_000, r"malformed"),
        ("a.txt", GOOD, r"the format is not known"),
        ("a.npz", "PK nonsense", r"no NPZ file"),
        ("a.npz", "", r"no NPZ file"),
        ("a.npy", "", r"no NPY file"),
        ("a.npy", "\x93NUMPY nonsense", r"no NPY file"),
    ],
)
def test_a_malformed_file_gives_one_error_that_says_where(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(RegardError, match=words):
        read_collection(tmp_path / name)


def test_bytes_that_are_no_text_are_told_by_their_line(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(GOOD.encode() + b"\n\xff")
    with pytest.raises(InputError, match=r"a\.jsonl:2: .*\n.*UTF-8"):
        read_collection(tmp_path / "a.jsonl")


def test_an_npz_without_its_arrays_is_told_by_its_record(collection, tmp_path):
    path = write_collection(tmp_path / "a.npz", collection)
    with np.load(path) as opened:
        arrays = dict(opened)
    del arrays["weights_1"]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"record 2: .*\n.*weights_1"):
        read_collection(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(InputError, match="an array `weights`"):
        read_collection(path)
    np.savez(path, weights=np.ones(3))
    with pytest.raises(RegardError, match=r"a\.npz: "):
        read_collection(path)


def test_a_damaged_npz_is_one_clear_error_wherever_the_damage_is(tmp_path):
    one = Record(weights(3, 5), list("abc"), list("vwxyz"))
    path = write_collection(tmp_path / "a.npz", [one])
    good = path.read_bytes()
    told = []
    for place in range(0, len(good), 3):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        try:
            assert read_collection(path)[0].weights.shape == (1, 1, 3, 5)
        except RegardError as error:
            told.append(str(error))
    assert len(told) > len(good) / 10
    assert all("a.npz" in text for text in told)


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_collection(tmp_path / "none.json")
    (tmp_path / "d.json").mkdir()
    with pytest.raises(InputError, match="directory"):
        read_collection(tmp_path / "d.json")


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    record = Record([[1.0]], ["a"], ["b"], made_by={"when": object()})
    for suffix in (".json", ".npz"):
        with pytest.raises(InputError, match="made_by"):
            write_collection(tmp_path / f"a{suffix}", [record])
    assert list(tmp_path.iterdir()) == []


def test_the_kind_of_an_error_is_kept(tmp_path):
    (tmp_path / "a.json").write_text(GOOD.replace('["a"]', '["a", "b"]'))
    with pytest.raises(ShapeError, match=r"a\.json: Alignment"):
        read_collection(tmp_path / "a.json")


def test_one_array_is_read_by_position_and_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "w.npy", weights(2, 3, 5, 7))
    (one,) = read_collection(tmp_path / "w.npy")
    np.testing.assert_array_equal(one.weights, weights(2, 3, 5, 7))
    assert one.target == tuple("01234")
    np.save(tmp_path / "bad.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not unpickled"):
        read_collection(tmp_path / "bad.npy")
    with pytest.raises(InputError, match="the format is not known"):
        write_collection(tmp_path / "out.npy", [one])


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (2, 2, 2, 2, 2)])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_an_array_of_other_axes_is_told_by_its_shape(tmp_path, suffix, shape):
    path = tmp_path / f"w{suffix}"
    if suffix == ".npy":
        np.save(path, np.zeros(shape))
    else:
        np.savez(path, weights=np.zeros(shape))
    with pytest.raises(ShapeError, match=r"got +weights \(") as error:
        read_collection(path)
    assert str(error.value).startswith(str(path))
