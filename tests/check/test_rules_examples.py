"""Each rule's examples, run: the bad one breaks the relation, and the good one keeps it.

The relation of each rule is computed here, from what the code returns and independently of the
engine. Sizes are distinct primes, except for d_model, which is heads times d_head.
"""

import contextlib
import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from regard.check.rules import Example, every  # noqa: E402

SIZES = {
    "batch": 2,
    "T_dec": 5,
    "T_enc": 7,
    "T": 7,
    "heads": 3,
    "d_h": 11,
    "d_s": 13,
    "d_attn": 17,
    "d_emb": 19,
    "d_model": 3 * 23,
}
HIDDEN = 2  # keys at the end that the mask hides
Relation = Callable[[Example], bool]


def names(example: Example) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(example.source, "example", "exec"), space)
    return space


def built(example: Example) -> Any:
    made = names(example)[example.entry]
    if not isinstance(made, type):
        return made
    torch.manual_seed(0)
    return made(**{k: SIZES[v] for k, v in example.contract["init"].items()}).eval()


def inputs(example: Example, seed: int = 1, **sizes: int) -> dict[str, Any]:
    contract, every_size = example.contract, {**SIZES, **sizes}
    random = torch.Generator().manual_seed(seed)
    values: Mapping[str, str] = contract.get("values", {})
    given = {}
    for name, axes in contract["inputs"].items():
        shape = [every_size[axis] for axis in axes.split()]
        if name in values:
            given[name] = every_size[values[name]]
        elif contract.get("kinds", {}).get(name) == "keep":
            given[name] = torch.ones(shape, dtype=torch.bool)
            given[name][..., -HIDDEN:] = False
        else:
            given[name] = torch.randn(shape, generator=random) / 3
    return given


def outputs(example: Example, given: Mapping[str, Any]) -> dict[str, Any]:
    result = built(example)(*given.values())
    result = result if isinstance(result, tuple) else (result,)
    told = [each["name"] for each in example.contract["returns"]]
    return dict(zip(told, result, strict=True))


def near(a: Any, b: Any, tolerance: float = 1e-5) -> bool:
    return a.shape == b.shape and bool(torch.allclose(a, b, atol=tolerance, rtol=0))


def the_call_returns(example: Example) -> bool:
    try:
        outputs(example, inputs(example))
    except RuntimeError:
        return False
    return True


def the_rows_of_the_weights_mix_the_values(example: Example) -> bool:
    given = inputs(example)
    got = outputs(example, given)
    values = given["x"] @ given["W_v"]
    return near(got["context"], torch.einsum("bti,bid->btd", got["weights"], values))


def the_weights_mix_the_keys(example: Example) -> bool:
    given = inputs(example)
    got = outputs(example, given)
    mixed = torch.einsum("b...i,bid->b...d", got["weights"], given["keys"])
    return near(got["context"], mixed)


def the_axes_are_those_declared(example: Example) -> bool:
    got = outputs(example, inputs(example))
    return all(
        list(got[told["name"]].shape) == [SIZES[axis] for axis in told["axes"].split()]
        for told in example.contract["returns"]
    )


def one_example_has_as_many_axes_as_two(example: Example) -> bool:
    one, two = (outputs(example, inputs(example, batch=batch)) for batch in (1, 2))
    return all(one[name].ndim == two[name].ndim for name in one)


def an_example_alone_is_what_it_is_in_a_batch(example: Example) -> bool:
    given = inputs(example)
    alone = {name: value[:1] for name, value in given.items()}
    got, expected = outputs(example, alone), outputs(example, given)
    return all(near(got[name], expected[name][:1]) for name in got)


def hidden_keys_have_no_weight_and_the_others_have_some(example: Example) -> bool:
    weights = outputs(example, inputs(example))["weights"]
    return bool((weights[..., -HIDDEN:] == 0).all() and (weights[..., :-HIDDEN] > 0).all())


def padding_does_not_matter(example: Example) -> bool:
    given = inputs(example)
    poisoned = dict(given, keys=given["keys"].clone())
    poisoned["keys"][:, -HIDDEN:] += 5
    return near(outputs(example, given)["context"], outputs(example, poisoned)["context"])


def later_positions_do_not_matter(example: Example) -> bool:
    given = inputs(example)
    changed = {"x": given["x"].clone()}
    changed["x"][:, 4:] += 1
    before, after = outputs(example, given)["context"], outputs(example, changed)["context"]
    return near(before[:, :4], after[:, :4])


def a_query_sees_itself_and_what_came_before(example: Example) -> bool:
    weights = outputs(example, inputs(example))["weights"]
    T = SIZES["T"]
    pattern = torch.tensor([[i <= t for i in range(T)] for t in range(T)])
    return bool(((weights > 0) == pattern).all())


def a_query_without_keys_gets_zeros(example: Example) -> bool:
    given = inputs(example)
    given["keep"][0] = False
    got = outputs(example, given)
    return bool((got["weights"][0] == 0).all() and (got["context"][0] == 0).all())


def visible_weights_sum_to_one(example: Example) -> bool:
    sums = outputs(example, inputs(example))["weights"][..., :-HIDDEN].sum(-1)
    return near(sums, torch.ones_like(sums))


def the_mask_matters(example: Example) -> bool:
    given = inputs(example)
    shown = dict(given, keep=torch.ones_like(given["keep"]))
    return not near(outputs(example, given)["weights"], outputs(example, shown)["weights"])


def real_queries_do_not_see_padding(example: Example) -> bool:
    weights = outputs(example, inputs(example))["weights"]
    return bool((weights[:, :-HIDDEN, -HIDDEN:] == 0).all())


def rows_sum_to_one(example: Example) -> bool:
    sums = outputs(example, inputs(example))["weights"].sum(-1)
    return near(sums, torch.ones_like(sums))


def a_weight_may_come_near_one(example: Example) -> bool:
    given = {name: 30 * value for name, value in inputs(example).items()}
    bound = math.e / (math.e + SIZES["T_enc"] - 1)
    return outputs(example, given)["weights"].max().item() > bound + 0.1


def two_queries_differ_in_their_weights(example: Example) -> bool:
    weights = outputs(example, inputs(example))["weights"]
    return not near(weights[:, 0], weights[:, 1])


def a_head_is_a_slice_of_the_features(example: Example) -> bool:
    x, heads = inputs(example)["x"], SIZES["heads"]
    width = SIZES["d_model"] // heads
    split = names(example)["split"](x, heads)
    slices = [x[..., h * width : (h + 1) * width] for h in range(heads)]
    return near(split, torch.stack(slices, dim=1))


def merging_undoes_the_split(example: Example) -> bool:
    space, x = names(example), inputs(example)["x"]
    return near(space["merge"](space["split"](x, SIZES["heads"])), x)


def other_heads_do_not_matter(example: Example) -> bool:
    given = inputs(example)
    changed = dict(given, x=given["x"].clone())
    changed["x"][..., SIZES["d_model"] // SIZES["heads"] :] *= 2
    before, after = outputs(example, given), outputs(example, changed)
    return near(before["weights"][:, 0], after["weights"][:, 0])


def dot_products_scaled_by(scale: Callable[[Example], float]) -> Relation:
    """The logarithms of a row's weights are its scores, up to a constant."""

    def relation(example: Example) -> bool:
        given = inputs(example)
        weights = outputs(example, given)["weights"]
        if "x" in given:  # per head: the first head's features
            width = SIZES["d_model"] // SIZES["heads"]
            query = key = given["x"][..., :width]
            weights = weights[:, 0]
        else:
            query, key = given["query"], given["keys"]
        scores = torch.einsum("btd,bid->bti", query, key) * scale(example)
        got = weights.log() - weights.log().mean(-1, keepdim=True)
        return near(got, scores - scores.mean(-1, keepdim=True), 1e-4)

    return relation


def the_word_does_not_move_its_own_weights(example: Example) -> bool:
    given = inputs(example)
    other = dict(given, words=given["words"].clone())
    other["words"][:, 2] += 1
    moved = [outputs(example, each)["weights"] for each in (given, other)]
    assert not near(moved[0][:, 3], moved[1][:, 3])  # the next step's weights do move
    return near(moved[0][:, 2], moved[1][:, 2], 1e-7)


def float16_is_finite(example: Example) -> bool:
    given = {k: v.half() if v.is_floating_point() else v for k, v in inputs(example).items()}
    try:
        return bool(outputs(example, given)["context"].isfinite().all())
    except RuntimeError:
        return False


def large_scores_are_finite(example: Example) -> bool:
    given = {name: 100 * value for name, value in inputs(example).items()}
    return bool(outputs(example, given)["weights"].isfinite().all())


def weights_are_as_exact_as_float32(example: Example) -> bool:
    given = inputs(example)
    scores = torch.einsum("btd,bid->bti", given["query"].double(), given["keys"].double())
    exact = torch.softmax(scores, dim=-1)
    return near(outputs(example, given)["weights"].double(), exact, 1e-6)


def every_parameter_learns(example: Example) -> bool:
    layer, given = built(example), inputs(example)
    for value in given.values():
        value.requires_grad_()
    layer(*given.values())[0].square().sum().backward()
    return all(p.grad is not None and bool(p.grad.any()) for p in layer.parameters())


def gradient(example: Example, given: Mapping[str, Any], name: str) -> Any:
    given[name].requires_grad_()
    context = outputs(example, given)["context"]
    assert context.isfinite().all()
    context.square().sum().backward()
    return given[name].grad


def gradients_are_finite(example: Example) -> bool:
    given = inputs(example)
    given["keep"][0] = False
    return bool(gradient(example, given, "query").isfinite().all())


def hidden_keys_learn_nothing(example: Example) -> bool:
    return not gradient(example, inputs(example), "keys")[:, -HIDDEN:].any()


def gradients_are_finite_differences(example: Example) -> bool:
    def loss(value: Any) -> Any:
        return outputs(example, {**given, "query": value})["context"].square().sum()

    given = {name: value.double() for name, value in inputs(example).items()}
    query = given["query"].clone().requires_grad_()
    loss(query).backward()
    step = torch.zeros_like(query)
    step[1, 2, 3] = 1e-6
    with torch.no_grad():
        slope = (loss(query + step) - loss(query - step)) / 2e-6
    return abs((slope - query.grad[1, 2, 3]).item()) < 1e-5


def another_example_does_not_matter(example: Example) -> bool:
    given = inputs(example)
    axes = example.contract["inputs"]["keys"].split()
    changed = dict(given, keys=given["keys"].clone())
    changed["keys"].select(axes.index("batch"), 1).add_(1)
    return near(outputs(example, given)["context"][0], outputs(example, changed)["context"][0])


def a_call_leaves_nothing_behind(example: Example) -> bool:
    used, fresh = built(example), built(example)
    used(*inputs(example, seed=2).values())
    given = inputs(example)
    return near(used(*given.values())[1], fresh(*given.values())[1])


def two_equal_calls_are_equal(example: Example) -> bool:
    given = inputs(example)
    torch.manual_seed(0)
    first = outputs(example, given)["weights"]
    torch.manual_seed(0)
    return near(first, outputs(example, given)["weights"], 0)


def the_file_loads(example: Example) -> bool:
    try:
        names(example)
    except ImportError:
        return False
    return True


def tensors_are_accepted(example: Example) -> bool:
    entry = names(example)[example.entry]
    given = [torch.ones(2, 3, 5)] * entry.__code__.co_argcount
    try:
        entry(*given)
    except AttributeError:
        return False
    return True


def something_like_weights_comes_back(example: Example) -> bool:
    entry = names(example)[example.entry]
    result = entry(*[torch.ones(2, 3, 5)] * entry.__code__.co_argcount)
    parts = result if isinstance(result, tuple) else (result,)
    return any(bool(torch.allclose(part.sum(-1), torch.tensor(1.0))) for part in parts)


RELATIONS: dict[str, Relation] = {
    "RG101": the_call_returns,
    "RG102": the_rows_of_the_weights_mix_the_values,
    "RG103": the_weights_mix_the_keys,
    "RG104": the_axes_are_those_declared,
    "RG105": one_example_has_as_many_axes_as_two,
    "RG106": an_example_alone_is_what_it_is_in_a_batch,
    "RG201": hidden_keys_have_no_weight_and_the_others_have_some,
    "RG202": padding_does_not_matter,
    "RG203": later_positions_do_not_matter,
    "RG204": a_query_sees_itself_and_what_came_before,
    "RG205": a_query_without_keys_gets_zeros,
    "RG206": visible_weights_sum_to_one,
    "RG207": the_mask_matters,
    "RG208": real_queries_do_not_see_padding,
    "RG301": rows_sum_to_one,
    "RG302": a_weight_may_come_near_one,
    "RG303": rows_sum_to_one,
    "RG304": the_weights_mix_the_keys,
    "RG305": two_queries_differ_in_their_weights,
    "RG401": a_head_is_a_slice_of_the_features,
    "RG402": merging_undoes_the_split,
    "RG403": dot_products_scaled_by(lambda _: (SIZES["d_model"] / SIZES["heads"]) ** -0.5),
    "RG404": other_heads_do_not_matter,
    "RG501": dot_products_scaled_by(lambda _: SIZES["d_h"] ** -0.5),
    "RG502": dot_products_scaled_by(lambda _: SIZES["d_h"] ** -0.5),
    "RG503": the_word_does_not_move_its_own_weights,
    "RG504": dot_products_scaled_by(lambda _: 1.0),
    "RG601": float16_is_finite,
    "RG602": large_scores_are_finite,
    "RG603": weights_are_as_exact_as_float32,
    "RG701": every_parameter_learns,
    "RG702": gradients_are_finite,
    "RG703": hidden_keys_learn_nothing,
    "RG704": gradients_are_finite_differences,
    "RG801": another_example_does_not_matter,
    "RG802": an_example_alone_is_what_it_is_in_a_batch,
    "RG803": a_call_leaves_nothing_behind,
    "RG901": the_file_loads,
    "RG902": tensors_are_accepted,
    "RG903": two_equal_calls_are_equal,
    "RG904": something_like_weights_comes_back,
}
RULES = pytest.mark.parametrize("rule", every(), ids=lambda rule: f"{rule.code}-{rule.name}")


@RULES
def test_the_bad_example_breaks_the_relation_and_the_good_one_keeps_it(rule):
    relation = RELATIONS[rule.code]
    assert not relation(rule.bad)
    assert relation(rule.good)


@RULES
@pytest.mark.parametrize("kind", ["bad", "good"])
def test_an_example_prints_what_its_page_says(rule, kind):
    example = getattr(rule, kind)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(example.show, "show", "exec"), names(example))
        except ModuleNotFoundError as error:
            print(f"{type(error).__name__}: {error}")
    assert out.getvalue().strip() == example.prints


def test_axes_that_do_not_meet_run_where_their_sizes_are_equal():
    bad = next(rule for rule in every() if rule.code == "RG101").bad
    given = inputs(bad, T_dec=7)
    got = outputs(bad, given)
    assert got["context"].shape == given["query"].shape
    right = torch.einsum("bti,bid->btd", got["weights"], given["keys"])
    assert not near(got["context"], right)


def test_softmax_over_the_queries_makes_every_weight_one_at_a_single_step():
    bad = next(rule for rule in every() if rule.code == "RG301").bad
    got = outputs(bad, inputs(bad, T_dec=1))
    assert (got["weights"] == 1).all()
