"""Files that are damaged at random: an answer, or one clear error, and nothing else."""

import io
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.alignment.collection_files import read_collection
from regard.alignment.link_files import read_links
from regard.alignment.record import Record
from regard.errors import RegardError

PHARAOH = b"0-0 1-2 2p1\n\n3-3-P 0?1\n"
NAACL = b"1 1 1\n1 2 3 P\n2 1 1 S 0.5\n"
RECORD = {
    "weights": [[[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]]],
    "target": ["a", "b"],
    "source": ["x", "y", "z"],
    "name": "n",
    "model": "m",
    "layers": [3],
    "heads": [0],
    "made_by": {"k": 1},
    "counterfactuals": {
        "ablate": {
            "target": ["a", "c"],
            "difference": [0.1, 0.2],
            "unaltered": ["a", "b"],
            "how": "so",
            "positions": {
                "target": [["a", "a", "a"], ["b", "b", "c"]],
                "difference": [[0.1, 0.2, 0.3], [0.4, 0.5, 1.0]],
            },
        }
    },
}
FUZZ = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def damaged(draw, data):
    """Change, drop and double some bytes."""
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(found) - 1)))
        kind = draw(st.sampled_from(["set", "cut", "insert", "double", "end"]))
        if kind == "set" and found:
            found[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del found[at : at + draw(st.integers(1, 9))]
        elif kind == "insert":
            found[at:at] = draw(
                st.sampled_from(
                    [
                        b"\xff",
                        b"-",
                        b"9" * 12,
                        b"\0",
                        b"\r",
                        b"NaN",
                        b"1e999",
                        b"\n",
                        b"[",
                        b'"',
                    ]
                )
            )
        elif kind == "double":
            found[at:at] = found[at : at + 20]
        else:
            del found[at:]
    return bytes(found)


@FUZZ
@given(data=st.data(), base=st.sampled_from([None, 0, 1]), turned=st.booleans())
@pytest.mark.parametrize("text", [PHARAOH, NAACL])
def test_links_are_read_or_refused(tmp_path, text, data, base, turned):
    path = tmp_path / "links"
    path.write_bytes(damaged(data.draw, text))
    try:
        found = read_links(path, base=base, target_first=turned, sizes=[(4, 4), (4, 4)])
    except RegardError as error:
        assert_clear(error, path)
    else:
        assert len(found.sentences) == 2
        assert all(0 <= s < 4 and 0 <= t < 4 for one in found.links() for s, t in one)


@FUZZ
@given(data=st.data())
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".npz", ".npy"])
def test_weights_are_read_or_refused(tmp_path, suffix, data):
    path = tmp_path / f"looked{suffix}"
    path.write_bytes(damaged(data.draw, whole(suffix)))
    read_or_refuse(path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(max_size=3)
    | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@FUZZ
@given(data=st.data(), value=VALUES)
def test_a_record_with_anything_in_the_place_of_anything_is_read_or_refused(
    tmp_path, data, value
):
    form = json.loads(json.dumps(RECORD))
    at, place = form, data.draw(st.sampled_from(sorted(form)))
    while isinstance(at[place], dict | list) and at[place] and data.draw(st.booleans()):
        at = at[place]
        places = sorted(at) if isinstance(at, dict) else range(len(at))
        place = data.draw(st.sampled_from(list(places)))
    at[place] = value
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(form))
    read_or_refuse(path)


def read_or_refuse(path):
    try:
        found = read_collection(path)
    except RegardError as error:
        assert_clear(error, path)
    else:
        assert all(isinstance(record, Record) for record in found)
        assert all(np.isfinite(record.weights).all() for record in found)


def assert_clear(error, path):
    """The file is named, and the text is laid out and short enough to be read."""
    text = str(error)
    assert text.startswith(str(path))
    assert "\n  expected  " in text
    assert "\n  got       " in text
    assert len(text) < 2000


def whole(suffix):
    stream = io.BytesIO()
    weights = np.array(RECORD["weights"])
    if suffix == ".npz":
        np.savez(stream, weights=weights, target=["a", "b"], source=["x", "y", "z"])
    elif suffix == ".npy":
        np.save(stream, weights)
    else:
        return json.dumps(RECORD).encode() + b"\n"
    return stream.getvalue()
