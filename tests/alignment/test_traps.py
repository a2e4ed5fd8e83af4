import numpy as np

from regard.alignment.links import Gold
from regard.alignment.traps import traps


def sentences(seed: int = 0) -> list[Gold]:
    random = np.random.default_rng(seed)
    # Sides of different lengths and links off the diagonal, as in text.
    return [
        Gold.of(
            {(int(s), int(t)) for s, t in zip(random.permutation(11), range(7), strict=False)}
        )
        for _ in range(23)
    ]


def test_a_file_as_it_should_be_is_not_suspected() -> None:
    gold = sentences()
    assert traps(gold, [pair.sure for pair in gold]) is None


def test_a_bad_system_is_not_suspected() -> None:
    assert traps(sentences(0), [pair.sure for pair in sentences(1)]) is None


def test_exchanged_sides_are_named() -> None:
    gold = sentences()
    trap = traps(gold, [pair.turned().sure for pair in gold])
    assert trap is not None
    assert (trap.turned, trap.shift, trap.aer) == (True, (0, 0), 0)
    assert str(trap).startswith("it looks like a file with the target's position first: ")


def test_counting_from_one_is_named() -> None:
    gold = sentences()
    trap = traps(gold, [frozenset((s + 1, t + 1) for s, t in pair.sure) for pair in gold])
    assert trap is not None
    assert (trap.turned, trap.shift, trap.aer) == (False, (-1, -1), 0)
    assert "source positions one too high and target positions one too high" in str(trap)


def test_one_side_read_one_step_late_is_named() -> None:
    gold = sentences()
    trap = traps(gold, [frozenset((s, t + 1) for s, t in pair.sure) for pair in gold])
    assert trap is not None
    assert (trap.turned, trap.shift) == (False, (0, -1))
