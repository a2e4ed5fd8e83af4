import numpy as np
import pytest

from regard.aligner.links import METHODS, links_of
from regard.aligner.model import Believed
from regard.cli.align_train import _METHODS
from regard.errors import InputError

BELIEVED = Believed(
    np.array([[0.9, 0.1, 0.0], [0.0, 0.45, 0.5]]),
    np.array([[0.8, 0.0, 0.0], [0.0, 0.8, 0.1]]),
)


@pytest.mark.parametrize(
    ("method", "least", "expected"),
    [
        ("forward", 0.4, {(0, 0), (1, 1), (2, 1)}),
        ("backward", 0.4, {(0, 0), (1, 1)}),
        ("intersection", 0.4, {(0, 0), (1, 1)}),
        ("union", 0.5, {(0, 0), (1, 1), (2, 1)}),
        ("grow-diag", 0.4, {(0, 0), (1, 1), (2, 1)}),
        ("mutual", 0.4, {(0, 0), (2, 1)}),  # 0.1 is the most of its column
        ("agreeing", 0.4, {(0, 0), (1, 1)}),  # the roots of 0.72 and 0.36
        ("agreeing", 0.2, {(0, 0), (1, 1), (2, 1)}),  # and of 0.05
    ],
)
def test_links_are_read_as_the_method_says(method, least, expected):
    assert links_of(BELIEVED, method, least) == expected


def test_the_command_offers_every_method():
    assert set(_METHODS) == set(METHODS)


@pytest.mark.parametrize("wrong", [{"method": "vote"}, {"least": 0.0}, {"least": 1.5}])
def test_other_methods_and_beliefs_are_refused(wrong):
    with pytest.raises(InputError, match="is refused"):
        links_of(BELIEVED, **wrong)
