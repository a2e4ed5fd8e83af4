import numpy as np
import pytest

from regard.alignment import Alignment
from regard.alignment.collection import Collection
from regard.alignment.record import Record
from regard.errors import InputError


def record(name="s", model="", heads=2):
    return Record(
        np.full((heads, 3, 5), 0.2), list("abc"), list("vwxyz"), name=name, model=model
    )


def test_records_keep_their_order_and_models_come_in_order_of_appearance():
    one = Collection([record("1", "b"), record("1", "a"), record("2", "b")])
    assert [(entry.name, entry.model) for entry in one] == [("1", "b"), ("1", "a"), ("2", "b")]
    assert one.models == ("b", "a")
    assert (len(one), one[2].name) == (3, "2")


def test_a_name_stands_once_for_each_model():
    with pytest.raises(InputError, match=r"records 0 and 2: name 's', model 'm'"):
        Collection([record("s", "m"), record("s", "n"), record("s", "m")])
    assert len(Collection([record(""), record("")])) == 2


def test_an_empty_collection_and_what_is_no_record_are_refused():
    with pytest.raises(InputError, match="none"):
        Collection([])
    alignment = Alignment([[1.0]], ["a"], ["b"])
    with pytest.raises(InputError, match=r"Record\(alignment.weights"):
        Collection([alignment])


def test_a_slice_cuts_every_record_and_names_the_one_that_cannot_be():
    cut = Collection([record("1", heads=3), record("2", heads=5)]).slice(heads=[2])
    assert [entry.heads for entry in cut] == [(2,), (2,)]
    with pytest.raises(InputError, match=r"record 0 \('1'\): there is no head 4"):
        Collection([record("1", heads=3), record("2", heads=5)]).slice(heads=[4])


def test_a_slice_takes_an_iterator_for_all_records():
    cut = Collection([record("1"), record("2")]).slice(heads=iter([1]))
    assert [entry.heads for entry in cut] == [(1,), (1,)]
