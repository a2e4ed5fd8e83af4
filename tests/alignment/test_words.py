import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment import Alignment
from regard.alignment.words import MARKERS, groups_of, merge, without
from regard.errors import InputError

PIECES = {
    "sentencepiece": ["▁att", "ention", "▁please"],
    "bpe": ["att@@", "ention", "please"],
    "wordpiece": ["att", "##ention", "please"],
    "gpt2": ["att", "ention", "Ġplease"],
}


@pytest.mark.parametrize("marker", MARKERS)
def test_every_marker_makes_the_same_words(marker: str) -> None:
    words = groups_of(PIECES[marker], marker)
    assert words == (("attention", (0, 1)), ("please", (2,)))


@given(st.lists(st.text("ab#@▁Ġ", min_size=1, max_size=5), min_size=1, max_size=11))
def test_every_piece_is_in_exactly_one_word(tokens) -> None:
    for marker in MARKERS:
        places = [place for _, group in groups_of(tokens, marker) for place in group]
        assert places == list(range(len(tokens)))


def alignment() -> Alignment:
    weights = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    return Alignment(weights, ["f@@", "g", "x@@", "y"], ["a@@", "b", "c"], {"seed": 3})


def test_source_pieces_are_summed_and_target_pieces_averaged() -> None:
    merged = merge(alignment(), target="bpe", source="bpe")
    assert (merged.target, merged.source) == (("fg", "xy"), ("ab", "c"))
    # The second word: its first piece looked at nothing, so the other alone counts.
    np.testing.assert_allclose(merged.weights, [[(0.75 + 0.3) / 2, (0.25 + 0.7) / 2], [1, 0]])
    assert merged.made_by == {"seed": 3}


def test_one_side_alone_can_be_merged() -> None:
    merged = merge(alignment(), source="bpe")
    assert (merged.target, merged.source) == (alignment().target, ("ab", "c"))


def test_a_word_that_looked_at_nothing_keeps_a_row_of_zeros() -> None:
    blind = Alignment([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], ["a@@", "b", "c"], ["x", "y"])
    assert merge(blind, target="bpe").weights.tolist() == [[0, 0], [1, 0]]


def test_an_end_that_nobody_looked_at_goes_silently() -> None:
    seen = Alignment([[1.0, 0.0], [0.995, 0.005]], ["a", "</s>"], ["x", "</s>"])
    assert without(seen, target=[1], source=[1], renormalize=False).weights.tolist() == [[1]]


def test_weight_that_would_be_lost_is_said() -> None:
    with pytest.raises(InputError) as error:
        without(alignment(), source=[2], renormalize=False)
    assert "got       step 1 has 0.7 on them" in str(error.value)


def test_rows_are_scaled_where_asked_for() -> None:
    rest = without(alignment(), source=[2], renormalize=True)
    np.testing.assert_allclose(rest.weights[1], [1 / 3, 2 / 3])
    assert rest.weights[2].tolist() == [0, 0]


@pytest.mark.parametrize("places", [[3], [-1], [0, 1, 2]])
def test_places_outside_or_all_of_a_side_are_refused(places) -> None:
    with pytest.raises(InputError, match="`source` is refused"):
        without(alignment(), source=places, renormalize=True)


def test_an_unknown_marker_is_refused() -> None:
    with pytest.raises(InputError, match="`marker` is unknown"):
        groups_of(["a"], "spm")
