"""The parts of the page that need no document, run by Node."""

import base64
import subprocess
import zlib

import numpy as np
import pytest

from node import NODE, WHY, Modules
from regard.alignment.explorer.bundle import HERE, script

pytestmark = pytest.mark.skipif(NODE is None, reason=WHY)


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    return Modules(HERE.glob("*.js"), tmp_path_factory.mktemp("modules"))


def test_the_bundle_is_a_script_that_node_can_parse(tmp_path):
    (tmp_path / "page.js").write_text(script(), encoding="utf-8")
    done = subprocess.run(
        [NODE, "--check", "page.js"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_head_and_the_mean_of_heads_are_read_from_their_place(modules):
    cells = np.random.default_rng(0).integers(0, 256, (2, 3, 5, 7), dtype=np.uint8)
    packed = base64.b64encode(zlib.compress(bytes(11) + cells.tobytes())).decode()
    record = {"at": 11, "target": ["t"] * 5, "source": ["s"] * 7, "heads": [4, 5, 6]}
    head, mean, row, column = modules.run(
        """
        const bytes = await weights.unpack(packed);
        const head = weights.matrixOf(bytes, record, 1, 2);
        say([...head.cells]);
        say([...weights.matrixOf(bytes, record, 1, -1).cells]);
        say([...weights.rowOf(head, 3)]);
        say([...weights.columnOf(head, 4)]);
        """,
        "weights",
        packed=packed,
        record=record,
    )
    np.testing.assert_allclose(head, cells[1, 2].ravel() / 255, atol=1e-6)
    np.testing.assert_allclose(mean, cells[1].mean(axis=0).ravel() / 255, atol=1e-6)
    np.testing.assert_allclose(row, cells[1, 2, 3] / 255, atol=1e-6)
    np.testing.assert_allclose(column, cells[1, 2, :, 4] / 255, atol=1e-6)


def test_links_reach_the_threshold_and_zero_is_never_one(modules):
    cells = [0, 51, 204, 0, 0, 255]  # 0, 0.2, 0.8; 0, 0, 1
    found = modules.run(
        """
        const matrix = {rows: 2, columns: 3, cells: Float32Array.from(cells, (c) => c / 255)};
        for (const least of [0.8, 0.81, 0, 1]) {
          say(weights.linksAbove(matrix, least).map(([row, column]) => [row, column]));
        }
        """,
        "weights",
        cells=cells,
    )
    assert found == [[[0, 2], [1, 2]], [[1, 2]], [[0, 1], [0, 2], [1, 2]], [[1, 2]]]


def test_the_largest_come_first_and_zeros_never(modules):
    found = modules.run(
        """
        say(weights.largest(Float32Array.from([0.1, 0.5, 0, 0.5, 0.2]), 3));
        say(weights.largest(Float32Array.from([0, 0]), 3));
        """,
        "weights",
    )
    assert found == [[1, 3, 4], []]


def test_tokens_that_cannot_be_seen_are_made_visible(modules):
    found = modules.run(
        "for (const token of tokens) say(weights.visible(token));",
        "weights",
        tokens=["", " a", "\n", "猫", "\u2028", "قطة"],
    )
    assert found == ["∅", "␣a", "\ufffd", "猫", "\ufffd", "قطة"]


def test_lightness_moves_one_way_and_every_ink_can_be_read(modules):
    tables = modules.run(
        """
        for (const theme of ["light", "dark"]) {
          const color = colors.palette(theme);
          const all = Array.from({length: 256}, (_, at) => color(at / 255));
          say(all.map((rgb) => [rgb, colors.inkOn(rgb)]));
        }
        """,
        "colors",
    )

    def luminance(rgb):
        share = np.asarray(rgb) / 255
        linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for table, sign in zip(tables, (-1, 1), strict=True):
        light = [luminance(rgb) for rgb, _ in table]
        assert (sign * np.diff(light) >= -1e-9).all()
        assert sign * (light[-1] - light[0]) > 0.7
        for value, (_, ink) in zip(light, table, strict=True):
            other = 0.0 if ink == "#000000" else 1.0
            high, low = max(value, other), min(value, other)
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_difference_has_its_own_colours_on_both_sides_of_nothing(modules):
    less, nothing, more, least = modules.run(
        """
        const color = colors.palette("light", true);
        for (const value of [-0.5, 0, 0.5, -9]) say(color(value));
        """,
        "colors",
    )
    assert less[0] > less[2] + 60, "less is orange"
    assert more[2] > more[0] + 60, "more is blue"
    assert min(nothing) > 245
    assert least[0] > least[2] + 60, "what is out of range stays at the end of the scale"
