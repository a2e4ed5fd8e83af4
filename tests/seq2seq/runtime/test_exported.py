import io
import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from regard.errors import InputError
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.runtime.exported import exported_bytes, read_exported
from regard.seq2seq.runtime.numbers import stored, unstored
from regard.seq2seq.runtime.transducer import NumpyTransducer
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import Vocab

SOURCE = Vocab.of(["abc"], kind="chars")
TARGET = Vocab.of(["xyzuv"], kind="chars")
SIZES = ModelConfig(len(SOURCE), len(TARGET), d_in=5, d_hidden=7, d_s=11, d_attn=13)
DESCRIPTION = Description(SIZES, SOURCE, TARGET, 7, 5, {"seed": 3})


@pytest.fixture(scope="module")
def weights():
    return weights_of(new_model(SIZES, seed=3))


def test_a_file_gives_back_what_was_written(tmp_path, weights):
    path = tmp_path / "m.npz"
    path.write_bytes(exported_bytes(DESCRIPTION, weights))
    found = read_exported(path)
    assert found.description == DESCRIPTION
    assert found.numbers == "float32"
    assert found.weights.keys() == weights.keys()
    assert all((found.weights[name] == value).all() for name, value in weights.items())


def test_equal_models_make_equal_files(weights):
    assert exported_bytes(DESCRIPTION, weights) == exported_bytes(DESCRIPTION, weights)


@pytest.mark.parametrize(("numbers", "share"), [("float16", 2**-11), ("int8", 1 / 254)])
def test_smaller_numbers_are_off_by_half_a_step_at_most(weights, numbers, share):
    found = unstored(stored(weights, numbers))
    sizes = {name: a.nbytes for name, a in stored(weights, numbers).items()}
    assert sum(sizes.values()) < 0.65 * sum(value.nbytes for value in weights.values())
    worst = 0.0
    for name, value in weights.items():
        bound = share * np.abs(value).max(-1, keepdims=True) * 1.001
        assert (np.abs(found[name] - value) <= bound).all()
        worst = max(worst, float(np.abs(found[name] - value).max()))
    assert worst > 0


def test_a_row_of_zeros_stays_one_in_int8():
    weights = {"w": np.array([[0.0, 0.0], [1.0, -0.5]], np.float32)}
    np.testing.assert_allclose(unstored(stored(weights, "int8"))["w"], weights["w"], atol=4e-3)


def test_what_float16_cannot_hold_is_refused():
    with pytest.raises(InputError, match="`w`"):
        stored({"w": np.array([[7e4]], np.float32)}, "float16")


def test_damage_is_refused(tmp_path, weights):
    path = tmp_path / "m.npz"
    whole = exported_bytes(DESCRIPTION, weights)
    rng = np.random.default_rng(3)
    for _ in range(20):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data)
        try:
            found = read_exported(path)
        except InputError as error:
            assert str(path) in str(error)  # noqa: PT017 - either is right
        else:  # a bit that no reader of archives looks at
            assert all((found.weights[name] == v).all() for name, v in weights.items())
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="damaged"):
            read_exported(path)


def _rewritten(data: bytes, change) -> bytes:
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    change(arrays)
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def test_numbers_and_headers_that_were_changed_are_refused(tmp_path, weights):
    path, whole = tmp_path / "m.npz", exported_bytes(DESCRIPTION, weights)

    def weight(arrays):
        arrays["embedding.weight"][5, 0] += 1

    def header(arrays):
        form = json.loads(arrays["header"].tobytes())
        form["longest_target"] = 6
        arrays["header"] = np.frombuffer(json.dumps(form).encode(), np.uint8)

    def version(arrays):
        form = json.loads(arrays["header"].tobytes())
        form["format"] = 2
        arrays["header"] = np.frombuffer(json.dumps(form).encode(), np.uint8)

    for change, match in (
        (weight, "check sum"),
        (header, "check sum"),
        (version, "format 2"),
        (dict.clear, "not an exported model"),
    ):
        path.write_bytes(_rewritten(whole, change))
        with pytest.raises(InputError, match=match):
            read_exported(path)


def test_what_is_no_file_of_ours_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_exported(tmp_path / "none.npz")
    with pytest.raises(InputError, match="a directory"):
        read_exported(tmp_path)


def test_an_exported_model_answers_without_pytorch(tmp_path, weights):
    path = tmp_path / "m.npz"
    path.write_bytes(exported_bytes(DESCRIPTION, weights, "int8"))
    wanted = [p.target for p in NumpyTransducer.load(path).predict(["abc", "b"])]
    program = f"""
        import sys

        for name in ("torch", "safetensors", "rapidfuzz", "matplotlib", "sentencepiece"):
            sys.modules[name] = None  # an import of it fails

        from regard.cli.main import main
        from regard.seq2seq.runtime.transducer import NumpyTransducer

        found = NumpyTransducer.load({str(path)!r}).predict(["abc", "b"])
        assert [p.target for p in found] == {wanted!r}
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, stdin=subprocess.DEVNULL
    )
