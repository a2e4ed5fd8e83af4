"""The outside data are the published outputs of two aligners in both directions; see
docs/alignment.md for where to get them. REGARD_DATA names the directory that holds `align`."""

import os
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.link_files import read_links
from regard.alignment.symmetrize import METHODS, symmetrize
from regard.errors import InputError

LINK_SETS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=16)
DATA = Path(os.environ.get("REGARD_DATA", "/nowhere")) / "align"


def by_the_pseudo_code(forward, backward, method):
    """Koehn et al.'s figure, transcribed over a grid, with no data structure of its own."""
    found = set(forward & backward)

    def free(s, t):
        return s not in {a for a, _ in found}, t not in {b for _, b in found}

    strict = "free" in method
    grew = True
    while grew:
        grew = False
        for s, t in product(range(9), range(9)):
            if (s, t) not in found:
                continue
            for ds, dt in (
                (-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1),
            ):  # fmt: skip
                near = (s + ds, t + dt)
                rule = all if strict else any
                if near in forward | backward and near not in found and rule(free(*near)):
                    found.add(near)
                    grew = True
    if "final" in method:
        rule = all if strict or method.endswith("and") else any
        for direction in (forward, backward):
            for s, t in product(range(9), range(9)):
                if (s, t) in direction and rule(free(s, t)):
                    found.add((s, t))
    return found


@given(LINK_SETS, LINK_SETS)
def test_growing_does_what_the_pseudo_code_says(forward, backward) -> None:
    for method in METHODS[2:]:
        assert symmetrize(forward, backward, method) == by_the_pseudo_code(
            forward, backward, method
        )


@given(LINK_SETS, LINK_SETS)
def test_every_method_lies_between_intersection_and_union(forward, backward) -> None:
    both, either = forward & backward, forward | backward
    assert symmetrize(forward, backward, "intersection") == both
    assert symmetrize(forward, backward, "union") == either
    for method in METHODS:
        assert both <= symmetrize(forward, backward, method) <= either


@given(LINK_SETS)
def test_two_equal_directions_stay_as_they_are(links) -> None:
    assert {symmetrize(links, links, method) for method in METHODS} == {links}


def test_final_links_words_far_from_all_others_and_grow_diag_does_not() -> None:
    forward, backward = frozenset({(0, 0), (5, 3)}), frozenset({(0, 0)})
    assert symmetrize(forward, backward, "grow-diag") == {(0, 0)}
    assert symmetrize(forward, backward, "grow-diag-final") == {(0, 0), (5, 3)}


def test_final_and_asks_both_words_to_be_free() -> None:
    forward, backward = frozenset({(0, 0), (0, 5)}), frozenset({(0, 0)})
    assert symmetrize(forward, backward, "grow-diag-final") == {(0, 0), (0, 5)}
    assert symmetrize(forward, backward, "grow-diag-final-and") == {(0, 0)}


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(InputError, match="symmetrize\\(\\): `method` is unknown"):
        symmetrize(frozenset(), frozenset(), "grow")  # type: ignore[arg-type]


@pytest.mark.skipif(not DATA.is_dir(), reason="REGARD_DATA names no directory with `align`")
@pytest.mark.parametrize("pair", ["enfr", "roen"])
@pytest.mark.parametrize("tool", ["fastalign", "giza"])
@pytest.mark.parametrize(
    ("published", "method", "least"),
    [
        ("intersection", "intersection", 1.0),
        ("grow-diagonal", "grow-diag-free", 0.97),
        ("grow-diagonal-final", "grow-diag-free-final", 0.97),
    ],
)
def test_published_symmetrised_outputs_come_out(pair, tool, published, method, least) -> None:
    forward = read_links(DATA / f"{pair}.{tool}.fwd.out").links()
    backward = read_links(DATA / f"{pair}.{tool}.rev.out", target_first=True).links()
    wanted = read_links(DATA / f"{pair}.{tool}.{published}.out").links()
    found = [symmetrize(a, b, method) for a, b in zip(forward, backward, strict=True)]
    same = sum(a == b for a, b in zip(found, wanted, strict=True))
    assert same >= least * len(wanted)
