"""Numbers of parameters that depend on names alone."""

import pytest

torch = pytest.importorskip("torch")

from regard.check.parameters import redraw  # noqa: E402


class Counted(torch.nn.Module):
    """A module whose parameters bear the number of the object, as Keras' do."""

    made = 0

    def __init__(self):
        super().__init__()
        suffix = f"_{Counted.made}" if Counted.made else ""
        Counted.made += 1
        self.parts = torch.nn.ParameterDict({f"dense{suffix}/kernel": torch.zeros(3, 5)})


def test_a_second_object_gets_the_numbers_of_the_first_though_its_names_are_counted_on():
    first, second = Counted(), Counted()
    assert list(first.parts) != list(second.parts)
    for each in (first, second):
        redraw(each)
    (a,), (b,) = first.parts.values(), second.parts.values()
    assert torch.equal(a, b)
    assert a.abs().min() > 0


def test_layers_of_a_list_get_numbers_of_their_own():
    layers = torch.nn.ModuleList([torch.nn.Linear(3, 5), torch.nn.Linear(3, 5)])
    redraw(layers)
    assert not torch.equal(layers[0].weight, layers[1].weight)


def test_one_number_for_each_head_keeps_its_sign_wherever_its_axis_lies():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tau = torch.nn.Parameter(torch.full((1, 7, 1, 1), 0.5))
            self.gain = torch.nn.Parameter(torch.ones(11, 1, 1))
            self.mixed = torch.nn.Parameter(torch.ones(11, 13))

    module = Scaled()
    redraw(module)
    assert (module.tau > 0.1).all()
    assert (module.gain > 0.1).all()
    assert module.tau.unique().numel() == 7
    assert (module.mixed < 0).any()
