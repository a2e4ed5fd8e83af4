import itertools

import pytest

from regard.errors import InputError, ShapeError

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from regard.alignment.colors import DARK, PAPER
from regard.demo.looks import LOOKS, SPARE, looks
from regard.demo.plots import accuracy_plot, alignment_plot, demo_figures


def words(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def boxes(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    return [
        # An annotation's own extent includes its line, which may cross anything.
        (text.get_text(), Text.get_window_extent(text, renderer))
        for text in figure.findobj(Text)
        if text.get_text() and text.get_visible()
    ]


def assert_readable(figure):
    found = boxes(figure)
    width, height = figure.canvas.get_width_height()
    for said, box in found:
        assert box.x0 >= -1, said
        assert box.y0 >= -1, said
        assert box.x1 <= width + 1, said
        assert box.y1 <= height + 1, said
    for (one, first), (other, second) in itertools.combinations(found, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        # Fonts leave a little air inside their boxes.
        assert wide <= 1 or high <= 2, (one, other)


def model_lines(figure):
    return {
        line.get_color(): line for line in figure.axes[0].lines if len(line.get_xdata()) > 2
    }


def contrast(one, other):
    """Contrast ratio of two colours, from 1 to 21, as WCAG 2.2 defines it."""
    light = []
    for color in (one, other):
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)
        ]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_each_line_is_the_mean_over_seeds_and_its_band_the_range(results):
    copy = results()["copy"]
    figure = accuracy_plot(copy)
    line = model_lines(figure)[LOOKS["dot"].color]
    seeds = list(copy["models"]["dot"]["token_accuracy"].values())
    assert list(line.get_ydata()) == pytest.approx([sum(cell) / 3 for cell in seeds])
    band = figure.axes[0].collections[list(copy["models"]).index("dot")]
    edge = band.get_paths()[0].vertices[:, 1]
    assert edge.min() == min(min(cell) for cell in seeds)
    assert edge.max() == max(max(cell) for cell in seeds)


def test_the_figure_names_models_chance_extrapolation_and_spread(results):
    said = words(accuracy_plot(results()["copy"]))
    for wanted in (
        "no attention",
        "Bahdanau",
        "Luong dot",
        "Luong general",
        "chance 6.25 %",
        "longer than trained:\nextrapolation",
        "Mean of 3 seeds; band: lowest to highest seed. Trained on lengths 1 to 80.",
    ):
        assert wanted in said


def test_every_length_is_labelled(results):
    ax = accuracy_plot(results()["copy"]).axes[0]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["5", "10", "20", "40", "80", "120", "160"]


def test_lengths_trained_on_lie_outside_the_shaded_region_and_longer_ones_inside(results):
    ax = accuracy_plot(results()["copy"]).axes[0]
    (region,) = ax.patches
    start, stop = region.get_x(), region.get_x() + region.get_width()
    inside = [start <= place <= stop for place in ax.get_xticks()]
    assert inside == [False] * 5 + [True] * 2


def test_without_extrapolation_nothing_is_shaded(results):
    figure = accuracy_plot(results(lengths=(5, 10, 80))["copy"])
    assert not figure.axes[0].patches
    assert not [said for said in words(figure) if "extrapolation" in said]


def test_lengths_shorter_than_trained_are_extrapolation_too(results):
    copy = results()["copy"] | {"trained_lengths": [20, 80]}
    figure = accuracy_plot(copy)
    assert len(figure.axes[0].patches) == 2
    assert "shorter than trained:\nextrapolation" in words(figure)
    assert_readable(figure)


@pytest.mark.parametrize(
    "lengths", [(5, 10, 20, 40, 80, 120, 160), (5, 10), (5,), (20, 40, 80, 120)]
)
def test_no_text_of_the_accuracy_plot_is_clipped_or_lies_on_another(results, lengths):
    assert_readable(accuracy_plot(results(lengths=lengths)["copy"]))


def test_lines_that_end_together_have_their_names_apart(results):
    copy = results()["copy"]
    model = copy["models"]["dot"]
    copy["models"] = dict.fromkeys(
        ["none", "bahdanau", "dot", "general", "concat", "scaled_dot", "location"], model
    )
    for cells in model["token_accuracy"].values():
        cells[:] = [0.999, 1.0, 1.0]
    assert_readable(accuracy_plot(copy))


@pytest.mark.parametrize(
    ("lengths", "ticks"),
    [((3, 5, 7, 71, 73), [0, 1, 2, 3, 4]), (range(101, 141), list(range(0, 40, 3)))],
)
def test_lengths_too_close_for_a_logarithm_are_spaced_evenly(results, lengths, ticks):
    copy = results(models=("dot",))["copy"]
    copy["lengths"] = list(lengths)
    copy["models"]["dot"] = {"token_accuracy": {str(n): [0.5, 0.6] for n in lengths}}
    figure = accuracy_plot(copy)
    assert list(figure.axes[0].get_xticks()) == ticks
    assert_readable(figure)


def test_one_seed_says_that_there_is_no_spread(results):
    said = words(accuracy_plot(results(seeds=(0,))["copy"]))
    assert "One seed, so no spread is shown. Trained on lengths 1 to 80." in said


def test_models_without_figures_are_left_out(results):
    copy = results(models=("none", "dot"))["copy"]
    copy["models"]["dot"]["token_accuracy"] = {}
    said = words(accuracy_plot(copy))
    assert "no attention" in said
    assert "Luong dot" not in said


def test_a_figure_that_is_no_share_is_refused(results):
    copy = results()["copy"]
    copy["models"]["dot"]["token_accuracy"]["5"] = [7]
    with pytest.raises(InputError, match="is no share"):
        accuracy_plot(copy)


def test_models_differ_in_colour_marker_and_line_style_at_once():
    every = [*LOOKS.values(), *SPARE]
    for sign in ("color", "dark", "marker", "dash"):
        assert len({getattr(look, sign) for look in every}) == len(every), sign


def test_every_colour_reads_as_text_on_its_ground_light_or_dark():
    for look in [*LOOKS.values(), *SPARE]:
        assert contrast(look.color, PAPER) >= 4.5, look
        assert contrast(look.dark, DARK[PAPER]) >= 4.5, look


def test_unknown_models_get_looks_of_their_own():
    found = looks(["dot", "mine", "yours"])
    assert found["dot"] == LOOKS["dot"]
    assert len({look.color for look in found.values()}) == 3


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_alignments_stand_side_by_side_on_one_scale(results, count):
    entry = results()["alignments"]["copy"]["dot"]
    figure = alignment_plot({f"model {n}": entry for n in range(count)})
    grids = [
        ax for ax in figure.axes if ax.images and ax.images[0].get_array().shape == (21, 20)
    ]
    assert len(grids) == count
    assert {ax.images[0].get_clim() for ax in grids} == {(0, 1)}
    assert len([said for said in words(figure) if said == "weight"]) == 1
    assert_readable(figure)


def test_an_alignment_whose_counts_do_not_fit_is_refused(results):
    entry = results()["alignments"]["copy"]["dot"]
    entry["target"] = entry["target"][:-1]
    with pytest.raises(ShapeError, match="`target` does not fit"):
        alignment_plot({"dot": entry})


def test_every_picture_of_the_job_is_drawn_and_readable(results):
    figures = demo_figures(results())
    assert list(figures) == ["accuracy", "alignments", "word_1", "word_2", "word_3", "word_4"]
    for figure in figures.values():
        assert_readable(figure)


def test_only_what_was_measured_is_drawn(results):
    found = results(models=("none",))
    found["g2p"]["examples"][1]["weights"] = []
    assert list(demo_figures(found)) == ["accuracy", "word_1", "word_3", "word_4"]
    assert demo_figures({}) == {}
    alignments = {"copy": {"dot": {"weights": []}, "none": None}}
    assert demo_figures({"alignments": alignments}) == {}
