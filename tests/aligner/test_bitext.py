import torch

from regard.aligner.bitext import Bitext, Words
from regard.aligner.corpus import SentencePairs

SOURCE = ["the cat sleeps", "", "The dog", "one two three four five six seven"]
TARGET = ["le chat dort", "rien", "le chien noir", "un deux"]


def bitext(source=None, target=None):
    pairs = SentencePairs(map(str.split, SOURCE), map(str.split, TARGET))
    return Bitext(pairs, source or Words(), target or Words())


def test_every_cell_names_the_words_that_meet_there():
    found = bitext()
    seen = set()
    for batch in found.batches:
        for row, place in enumerate(batch.places):
            seen.add(place)
            s, t = SOURCE[place].lower().split(), TARGET[place].lower().split()
            for i, one in enumerate(s):
                for j, other in enumerate(t):
                    cell = batch.cells[row, j, i].long()
                    assert cell > 0
                    assert found.source.words[found.pair_source[cell]] == one
                    assert found.target.words[found.pair_target[cell]] == other
            assert not batch.cells[row, len(t) :].any()
            assert not batch.cells[row, :, len(s) :].any()
    assert seen == {0, 2, 3}  # the one with an empty side is left out


def test_pairs_of_words_are_listed_once():
    found = bitext()
    listed = list(
        zip(found.pair_source[1:].tolist(), found.pair_target[1:].tolist(), strict=True)
    )
    assert sorted(set(listed)) == listed
    assert len(listed) == 3 * 3 + 2 * 3 - 1 + 7 * 2  # "the" meets "le" twice


def test_frequencies_count_words_in_lower_case():
    found = bitext()
    source, target = found.frequencies()
    assert source[found.source.words.index("the")] == 2
    assert target[found.target.words.index("chien")] == 1
    assert source.sum() == 3 + 2 + 7


def test_pairs_are_found_in_another_list_of_pairs():
    first = bitext()
    known = {"source": first.pair_source[3:7], "target": first.pair_target[3:7]}
    place = first.place_of(known)
    assert place[3:7].tolist() == [0, 1, 2, 3]
    assert (place[:3] == -1).all()
    assert (place[7:] == -1).all()
    nothing = torch.zeros(0, dtype=torch.int64)
    assert (first.place_of({"source": nothing, "target": nothing}) == -1).all()


def test_a_later_text_adds_its_new_words_after_the_known_ones():
    source = Words(["dog", "the"])
    found = bitext(source)
    assert source.words[:3] == ["dog", "the", "cat"]
    assert found.source.numbers(("Dog", "zebra")) == [0, len(source.words) - 1]
