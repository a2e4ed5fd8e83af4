import re
from types import SimpleNamespace

import numpy as np
import pytest

from regard.alignment.pictures import picture
from regard.alignment.record import Record
from regard.errors import InputError

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from regard.alignment.curves import curves
from regard.alignment.fonts import families
from regard.alignment.head_grid import head_grid


def record(layers=2, heads=3, steps=5, states=7, **options):
    weights = np.exp(np.random.default_rng(1).normal(0, 2, (layers, heads, steps, states)))
    weights /= weights.sum(axis=-1, keepdims=True)
    return Record(
        weights, [f"t{n}" for n in range(steps)], [f"s{n}" for n in range(states)], **options
    )


@pytest.mark.parametrize("kind", ["map", "heads", "curves"])
@pytest.mark.parametrize(
    ("suffix", "start"), [(".svg", b"<"), (".png", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_every_picture_is_written_in_every_format_with_the_same_bytes(
    tmp_path, kind, suffix, start
):
    first, _ = picture(tmp_path / f"a{suffix}", record(), kind=kind, title="$5 < $7")
    second, _ = picture(tmp_path / f"b{suffix}", record(), kind=kind, title="$5 < $7")
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()


def test_a_map_shows_the_head_asked_for_or_the_mean_of_all(tmp_path):
    one = record(layers=2, heads=3)
    for options, weights in (
        ({}, one.weights[0].mean(axis=0)),
        ({"layer": 1}, one.weights[1].mean(axis=0)),
        ({"layer": 1, "head": 2}, one.weights[1, 2]),
    ):
        path, _ = picture(tmp_path / "a.svg", one, **options)
        assert f"t3 ← s4: {weights[3, 4]:.3f}" in path.read_text("utf-8")


def test_a_picture_of_another_kind_or_name_is_refused(tmp_path):
    for name, kind in (("a.gif", "map"), ("a", "map"), ("a.svg", "pie")):
        with pytest.raises(InputError, match="this picture is not known"):
            picture(tmp_path / name, record(), kind=kind)
    with pytest.raises(InputError, match="there is no layer 7"):
        picture(tmp_path / "a.svg", record(), layer=7)
    assert list(tmp_path.iterdir()) == []


def test_all_heads_have_their_place_their_weights_and_their_monotonicity():
    one = record(layers=2, heads=3)
    axes = [ax for ax in head_grid(one).axes if ax.images]
    assert len(axes) == 6
    for place, ax in enumerate(axes):
        layer, head = divmod(place, 3)
        assert (ax.images[0].get_array() == one.weights[layer, head]).all()
        assert ax.images[0].get_clim() == (0, 1)
        measure = one.alignment(layer=layer, head=head).monotonicity()
        assert ax.get_title(loc="left") == f"{layer}.{head}  {measure:.2f}"


def test_heads_keep_their_numbers_in_a_grid_of_some():
    one = record(layers=2, heads=3).slice(layers=[1], heads=[2])
    titles = [ax.get_title(loc="left") for ax in head_grid(one).axes if ax.images]
    assert [title.split()[0] for title in titles] == ["1.2"]


def test_curves_show_the_place_and_the_entropy_of_each_step():
    weights = np.array(
        [[[0, 1.0, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 0], [0, 0, 0, 1.0]]]
    )
    one = Record(weights, list("abcd"), list("wxyz"))
    places, bits = curves(one).axes
    np.testing.assert_array_equal(places.lines[0].get_ydata(), [2, 1, np.nan, 4])
    np.testing.assert_allclose(bits.lines[0].get_ydata(), [0, 2, np.nan, 0])
    assert places.lines[0].get_label() == "head 0, monotonicity 0.50"
    np.testing.assert_allclose(bits.lines[-1].get_ydata(), 2)


def test_curves_of_another_layer_and_of_too_many_heads():
    one = record(layers=2, heads=3)
    places, _ = curves(one, layer=1).axes
    np.testing.assert_array_equal(
        places.lines[2].get_ydata(), one.weights[1, 2].argmax(axis=1) + 1
    )
    with pytest.raises(InputError, match="there is no layer 2"):
        curves(one, layer=2)
    with pytest.raises(InputError, match="at most 8 heads"):
        curves(record(heads=11))
    with pytest.raises(InputError, match="at most 256 heads"):
        head_grid(record(layers=2, heads=131))


def test_a_character_that_no_font_has_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.alignment.fonts.font_manager.fontManager.ttflist", [])
    assert families(["a猫", "قطة", "猫犬"]) == (["DejaVu Sans"], "猫犬")
    one = Record([[1.0]], ["猫"], ["b"])
    for suffix, missing in ((".png", "猫"), (".pdf", "猫"), (".svg", "")):
        assert picture(tmp_path / f"a{suffix}", one)[1] == missing


def test_fonts_are_added_until_every_character_has_one_and_boxes_are_no_font(monkeypatch):
    known = {"DejaVu": "a", "Last": "abc猫", "Noto": "猫", "Plain": "abc"}
    names = ["Plain Sans", "Last Resort HE", "Noto Sans CJK"]
    entries = [SimpleNamespace(name=name, fname=name) for name in names]
    fonts = "regard.alignment.fonts"
    monkeypatch.setattr(f"{fonts}.font_manager.fontManager.ttflist", entries)

    def left(wanted, path):
        first = next((word for word in known if word in path.rpartition("/")[2]), "")
        return dict.fromkeys(c for c in wanted if c not in known[first])

    monkeypatch.setattr(f"{fonts}._left", left)
    assert families(["a"]) == (["DejaVu Sans"], "")
    assert families(["a猫"]) == (["DejaVu Sans", "Noto Sans CJK"], "")
    every = ["DejaVu Sans", "Noto Sans CJK", "Plain Sans"]
    assert families(["猫bz"]) == (every, "z")


def test_a_vector_picture_of_matplotlib_names_no_address(tmp_path):
    path, _ = picture(tmp_path / "a.svg", record(), kind="curves")
    fetched = re.findall(r'(?:href|src)="(?!#|data:)[^"]*"', path.read_text("utf-8"))
    assert fetched == []
