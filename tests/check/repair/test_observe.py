"""What expressions and names were when the code ran."""

import ast

from regard.check.contract import Contract
from regard.check.repair.program import Program
from regard.check.sizes import Sizes

SOURCE = """
import numpy as np


def attend(query, key, keep):
    rows, size = query.shape
    scores = query @ key.T / np.sqrt(size)
    spare = np.zeros(rows)
    e = np.exp(np.where(keep, scores, -1e9))
    return e / e.sum(axis=-1, keepdims=True)
"""
CONTRACT = Contract.from_mapping(
    {
        "inputs": {"query": "T_dec d_h", "key": "T_enc d_h", "keep": "T_dec T_enc"},
        "kinds": {"keep": "keep"},
        "returns": [{"name": "weights", "axes": "T_dec T_enc"}],
    }
)


def program(source: str = SOURCE) -> Program:
    return Program(source, "observed.py", "attend", CONTRACT)


def node(here: Program, text: str) -> ast.expr:
    return next(n for n in here.nodes if here.text(n) == text and n in here.numbered)


def test_expressions_have_their_shapes_and_kinds() -> None:
    here = program()
    seen = here.seen(node(here, "query @ key.T"))
    assert seen is not None
    assert (seen.kind, seen.shape) == ("float", Sizes(0).shape("T_dec T_enc"))
    assert here.rank(node(here, "key.T")) == 2
    mask = here.seen(node(here, "keep"))
    assert mask is not None
    assert mask.kind == "mask"


def test_names_that_are_never_read_are_in_reach_too() -> None:
    here = program()
    names = {v.text: v.kind for v in here.scope(node(here, "e"))}
    assert names["spare"] == "float"
    assert names["rows"] == "int"
    assert "np" not in names


def test_a_name_is_not_in_reach_before_it_is_bound() -> None:
    here = program()
    names = {v.text for v in here.scope(node(here, "query @ key.T"))}
    assert "size" in names
    assert not {"scores", "spare", "e"} & names


def test_what_ran_before_a_crash_is_known() -> None:
    here = program(SOURCE.replace("key.T", "key"))
    assert here.observed.crash is not None
    assert here.seen(node(here, "query")).shape == Sizes(0).shape("T_dec d_h")
    assert here.seen(node(here, "e")) is None


def test_a_file_that_does_not_load_is_observed_as_nothing() -> None:
    here = program("raise RuntimeError('no')\ndef attend(query, key, keep):\n    return key\n")
    assert here.observed.expressions == {}


def test_calls_are_read_as_operations() -> None:
    here = program()
    total = here.operation(node(here, "e.sum(axis=-1, keepdims=True)"))
    root = here.operation(node(here, "np.sqrt(size)"))
    assert (total.form, total.name, here.text(total.operand)) == ("method", "sum", "e")
    assert (root.form, root.name, here.text(root.operand)) == ("library", "sqrt", "size")
