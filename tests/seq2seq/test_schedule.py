import itertools

import pytest

from regard.seq2seq.schedule import share_of_rate


def _course(decay: str, *, steps: int = 101, warm_up: int = 11, final: float = 0.25):
    return [
        share_of_rate(step, steps=steps, warm_up=warm_up, decay=decay, final=final)
        for step in range(steps)
    ]


@pytest.mark.parametrize("decay", ["cosine", "linear"])
def test_the_rate_rises_in_a_line_to_its_peak_and_falls_to_its_end(decay):
    course = _course(decay)
    assert course[:11] == pytest.approx([i / 11 for i in range(1, 12)])
    assert all(a > b for a, b in itertools.pairwise(course[10:]))
    assert course[-1] == pytest.approx(0.25)


def test_half_way_down_both_decays_meet():
    assert _course("cosine")[55] == pytest.approx(0.625)
    assert _course("linear")[55] == pytest.approx(0.625)


def test_a_cosine_stays_above_a_line_first_and_below_it_later():
    cosine, linear = _course("cosine"), _course("linear")
    assert cosine[30] > linear[30]
    assert cosine[80] < linear[80]


def test_a_constant_rate_only_warms_up():
    assert _course("constant")[10:] == [1.0] * 91


def test_without_warming_up_the_first_step_has_the_full_rate():
    assert _course("cosine", warm_up=0)[0] == 1.0


def test_a_run_of_one_step_has_the_full_rate():
    assert _course("linear", steps=1, warm_up=1) == [1.0]
