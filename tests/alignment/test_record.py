import numpy as np
import pytest

from regard.alignment.counterfactual import Counterfactual
from regard.alignment.record import Record
from regard.errors import BackendError, InputError, ShapeError

TARGET, SOURCE = list("abc"), list("vwxyz")


def weights(*shape, seed=0):
    drawn = np.random.default_rng(seed).uniform(0.1, 1.0, shape)
    return drawn / drawn.sum(axis=-1, keepdims=True)


def test_missing_axes_are_added_in_front():
    one = weights(3, 5)
    assert Record(one, TARGET, SOURCE).weights.shape == (1, 1, 3, 5)
    assert Record(weights(7, 3, 5), TARGET, SOURCE).weights.shape == (1, 7, 3, 5)
    assert (Record(one, TARGET, SOURCE).weights[0, 0] == one).all()


def test_a_head_is_found_by_the_number_that_the_model_gave_it():
    stack = weights(2, 3, 3, 5)
    record = Record(stack, TARGET, SOURCE, layers=(4, 11), heads=(7, 0, 5), model="m")
    found = record.alignment(layer=11, head=5)
    assert (found.weights == stack[1, 2]).all()
    assert found.made_by == {"layer": 11, "head": 5, "model": "m"}


def test_a_slice_keeps_the_numbers_and_the_order_asked_for():
    stack = weights(2, 3, 3, 5)
    cut = Record(stack, TARGET, SOURCE, name="s", model="m").slice(layers=[1], heads=[2, 0])
    assert (cut.layers, cut.heads, cut.name, cut.model) == ((1,), (2, 0), "s", "m")
    assert (cut.weights == stack[1:, [2, 0]]).all()
    assert (cut.slice(heads=[0]).weights == stack[1:, :1]).all()


def test_the_mean_of_heads_still_sums_to_1_where_one_head_looked_at_nothing():
    stack = weights(1, 2, 3, 5)
    stack[0, 0, 1] = 0
    mean = Record(stack, TARGET, SOURCE).alignment(layer=0, head="mean")
    np.testing.assert_allclose(mean.weights.sum(axis=1), 1)
    np.testing.assert_allclose(mean.weights[1], stack[0, 1, 1])
    np.testing.assert_allclose(mean.weights[0], (stack[0, 0, 0] + stack[0, 1, 0]) / 2)


def test_entropy_is_in_bits_and_not_defined_for_a_step_that_looked_at_nothing():
    rows = [[1.0, 0, 0, 0], [0.25] * 4, [0.0] * 4, [0.5, 0.25, 0.25, 0]]
    entropy = Record(rows, list("abcd"), list("wxyz")).entropy()
    np.testing.assert_allclose(entropy[0, 0], [0.0, 2.0, np.nan, 1.5])


@pytest.mark.parametrize(("layer", "head"), [(2, 0), (-1, 0), (0, 3), (0, "max"), (True, 0)])
def test_a_head_that_is_not_there_is_named_with_those_that_are(layer, head):
    record = Record(weights(2, 3, 3, 5), TARGET, SOURCE)
    with pytest.raises(InputError, match=r"expected  (layer 0 to 1|head 0 to 2)"):
        record.alignment(layer=layer, head=head)


def test_a_wrong_row_is_told_with_its_layer_and_head():
    stack = weights(2, 3, 3, 5)
    stack[1, 2, 1, 4] = np.nan
    with pytest.raises(
        InputError, match=r"layer 6, head 9: .*a weight is not finite"
    ) as caught:
        Record(stack, TARGET, SOURCE, layers=(5, 6), heads=(7, 8, 9))
    assert "weights[1, 4] = nan" in str(caught.value)
    stack[1, 2] = weights(3, 5) * 1.5
    with pytest.raises(InputError, match=r"layer 1, head 2: .*does not sum to 1"):
        Record(stack, TARGET, SOURCE)
    stack[1, 2] = [[-0.5, 1.5, 0, 0, 0]] * 3
    with pytest.raises(InputError, match=r"layer 1, head 2: .*is negative"):
        Record(stack, TARGET, SOURCE)


@pytest.mark.parametrize(
    ("made", "kind", "words"),
    [
        (lambda: Record(weights(5, 3), TARGET, SOURCE), ShapeError, "T_dec"),
        (lambda: Record(weights(1, 1, 1, 3, 5), TARGET, SOURCE), ShapeError, "5 axes"),
        (lambda: Record(np.zeros((0, 3, 5)), TARGET, SOURCE), ShapeError, "empty axis"),
        (lambda: Record([["a"]], ["x"], ["y"]), BackendError, "no array of numbers"),
        (lambda: Record(weights(3, 5), TARGET, SOURCE, layers=(1, 2)), ShapeError, "`layers`"),
        (lambda: Record(weights(2, 3, 5), TARGET, SOURCE, heads=(1, 1)), InputError, "`heads`"),
        (lambda: Record(weights(3, 5), TARGET, SOURCE, heads=[-1]), InputError, "`heads`"),
        (lambda: Record(weights(3, 5), TARGET, SOURCE, heads="0"), InputError, "`heads`"),
        (lambda: Record(weights(3, 5), TARGET, SOURCE, name=3), InputError, "`name`"),
        (lambda: Record(weights(3, 5), TARGET, SOURCE).slice(heads=[]), InputError, "`heads`"),
        (
            lambda: Record(
                weights(3, 5),
                TARGET,
                SOURCE,
                counterfactuals={"swap": Counterfactual(TARGET, [0] * 3)},
            ),
            InputError,
            "permute, uniform, ablate",
        ),
        (
            lambda: Record(
                weights(3, 5),
                TARGET,
                SOURCE,
                counterfactuals={"permute": Counterfactual(["a"], [0])},
            ),
            ShapeError,
            "3 steps",
        ),
        (lambda: Counterfactual(["a", "b"], [0.5]), ShapeError, "2 numbers"),
        (lambda: Counterfactual(["a"], [1.5]), InputError, "1.5"),
        (lambda: Counterfactual(["a"], [float("nan")]), InputError, "nan"),
        (lambda: Counterfactual("a", [0.5]), InputError, "`target`"),
        (lambda: Counterfactual(["a"], ["x"]), InputError, "`difference`"),
        (lambda: Counterfactual(["a"], None), InputError, "`difference`"),
    ],
)
def test_what_is_no_record_is_refused_by_name(made, kind, words):
    with pytest.raises(kind, match=words):
        made()


def test_records_are_equal_when_all_that_they_hold_is():
    one = Record(weights(2, 3, 5), TARGET, SOURCE, name="s", made_by={"seed": 3})
    assert one == Record(weights(2, 3, 5), TARGET, SOURCE, name="s", made_by={"seed": 3})
    assert hash(one) == hash(Record(weights(2, 3, 5), TARGET, SOURCE, name="s"))
    for other in (
        Record(weights(2, 3, 5, seed=1), TARGET, SOURCE, name="s", made_by={"seed": 3}),
        Record(weights(2, 3, 5), TARGET, SOURCE, name="t", made_by={"seed": 3}),
        Record(weights(2, 3, 5), TARGET, SOURCE, name="s", made_by={"seed": 5}),
        Record(weights(2, 3, 5), TARGET, SOURCE, name="s", made_by={"seed": 3}, heads=(1, 0)),
    ):
        assert one != other


def test_the_weights_are_a_copy_that_cannot_be_written():
    mine = weights(3, 5)
    record = Record(mine, TARGET, SOURCE)
    mine[:] = 0
    assert record.weights.any()
    with pytest.raises(ValueError, match="read-only"):
        record.weights[0, 0, 0, 0] = 1


def test_a_tensor_is_taken_without_a_warning_and_one_in_a_graph_is_refused():
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    tensor = torch.full((2, 3, 5), 0.2)
    assert Record(tensor, TARGET, SOURCE).weights.shape == (1, 2, 3, 5)
    with pytest.raises(BackendError, match="requires grad"):
        Record(tensor.requires_grad_(), TARGET, SOURCE)
