import re

import numpy as np

from regard.alignment import Alignment
from regard.alignment.collection import Collection
from regard.alignment.record import Record


def record(name="one", **options):
    weights = np.full((2, 3, 5, 7), 1 / 7)
    weights[0, 0, 0] = np.eye(7)[3]
    return Record(weights, list("abcde"), list("tuvwxyz"), name=name, **options)


def plain(fragment):
    """Whether it is safe in every notebook: no script, no class, no request."""
    return not re.search(r"<script|<style|class=|\bid=|href|\bsrc=|url\(|\son\w+=", fragment)


def test_an_alignment_shows_its_heat_map():
    shown = Alignment([[0.75, 0.25]], ["a<b"], ["x", "y"])._repr_html_()
    assert "a&lt;b ← x: 0.750" in shown
    assert "1 target tokens, 2 source tokens" in shown
    assert plain(shown)


def test_a_record_shows_the_mean_of_its_first_layer_and_says_so():
    shown = record(model="m")._repr_html_()
    assert "one, m, layer 0, heads: mean, of 2 layers of 3 heads" in shown
    assert f"a ← w: {(1 + 2 / 7) / 3:.3f}" in shown
    assert plain(shown)


def test_a_collection_shows_its_first_record_and_lists_all():
    shown = Collection([record(), record("<two>")])._repr_html_()
    assert "<td>&lt;two&gt;</td><td></td><td>2</td><td>3</td><td>5</td><td>7</td>" in shown
    assert shown.count("<svg") == 1
    many = Collection([record(str(place)) for place in range(23)])._repr_html_()
    assert "and 3 more" in many
    assert plain(many)


def test_where_html_is_left_out_the_text_names_tokens_and_sizes():
    one = record(model="m")
    assert repr(one) == (
        "Record(name='one', model='m', layers=2, heads=3, T_dec=5, T_enc=7, "
        "target=['a', 'b', 'c', 'd', 'e'], source=['t', 'u', 'v', 'w', 'x', 'y', 'z'])"
    )
    many = repr(Collection([record(str(place)) for place in range(23)]))
    assert many.startswith("Collection of 23:\n  Record(name='0'")
    assert many.endswith("\n  and 20 more")
    assert len(many.splitlines()) == 5
