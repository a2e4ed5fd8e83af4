import pytest

from regard.errors import InputError
from regard.seq2seq.clock import Clock


def _clock(spent: float = 0.0):
    now = [100.0]
    return Clock(spent=spent, read=lambda: now[0]), now


def test_a_clock_counts_from_when_it_was_made_and_what_was_spent_before():
    clock, now = _clock(spent=3.0)
    now[0] += 5.0
    assert clock.elapsed() == 8.0


def test_time_within_a_block_is_counted_under_its_name_even_if_it_fails():
    clock, now = _clock()

    def fail():
        with clock.during("looks"):
            now[0] += 2.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with clock.during("looks"):
        now[0] += 3.0
    assert clock.spent_on("looks") == 5.0
    assert clock.spent_on("steps") == 0.0


def test_a_second_sitting_goes_on_where_the_first_was_saved():
    first, now = _clock()
    with first.during("steps"):
        now[0] += 7.0
    saved = first.to_json()
    second, later = _clock()
    later[0] += 2.0  # to read the data again
    second.go_on(saved)
    assert second.elapsed() == 9.0
    assert second.spent_on("steps") == 7.0


@pytest.mark.parametrize("kind", ["wall", "cpu"])
def test_both_clocks_of_the_system_run_forwards(kind):
    clock = Clock(kind)
    before = clock.elapsed()
    sum(range(10_000))
    assert 0 <= before <= clock.elapsed()


def test_another_kind_is_refused():
    with pytest.raises(InputError, match="wall or cpu"):
        Clock("sun")
