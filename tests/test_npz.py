import io

import numpy as np
import pytest

from regard.npz import NoArraysError, arrays_of


def packed(save, *args, **kwargs) -> bytes:
    stream = io.BytesIO()
    save(stream, *args, **kwargs)
    return stream.getvalue()


def test_arrays_come_back_by_their_names():
    given = {"a": np.arange(7.0), "b c": np.array(["x", "yz"])}
    for save in (np.savez, np.savez_compressed):
        found = arrays_of(packed(save, **given))
        assert set(found) == set(given)
        assert all((found[name] == given[name]).all() for name in given)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no zip archive"),
        (packed(np.save, np.arange(5)), "no zip archive"),
        (packed(np.savez, a=np.array([{}], dtype=object)), "not unpickled"),
        (packed(np.savez, a=np.arange(97))[:-150], "no zip archive"),
    ],
)
def test_anything_else_is_refused(data, said):
    with pytest.raises(NoArraysError, match=said):
        arrays_of(data)


def test_no_changed_byte_ends_in_another_error():
    whole = packed(np.savez_compressed, a=np.arange(23), b=np.ones(3))
    said = []
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 0x55
        try:
            arrays_of(bytes(data))
        except NoArraysError as error:
            said.append(str(error))
    assert len(said) > len(whole) / 2
    assert all(said)
