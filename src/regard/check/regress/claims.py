"""The assertions a regression test can make, each as source text that stands alone.

A claim is a true statement about every right implementation of the contract. Which claims a
test keeps is decided by running them: on the code as it is and on the repaired code.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.check.regress.given import Given

__all__ = ["Claim", "claims", "pinned"]


@dataclass(frozen=True)
class Claim:
    """One test function: its name (a sentence) and its body."""

    name: str
    body: tuple[str, ...]
    always: bool = False  # kept even where it does not tell the bug from the repair

    def text(self) -> str:
        """The function's source."""
        return "\n".join([f"def test_{self.name}():", *(f"    {line}" for line in self.body)])


def claims(given: Given) -> Iterator[Claim]:
    """Every claim that the contract supports, the plainest first."""
    yield from _shapes(given)
    yield from _row_sums(given)
    if given.contract.mode == "train":
        return
    yield from _padding(given)
    yield from _causal(given)
    yield from _examples(given)
    yield from _alone(given)
    yield from _queries(given)
    yield from _order(given)
    yield from _influence(given)
    yield from _context(given)
    yield from _formula(given)
    yield from _repeatable(given)
    yield from _unchanged(given)


def _call(given: Given, inside: str = "inputs()") -> str:
    return f"outputs = run({inside})"


def _shapes(given: Given) -> Iterator[Claim]:
    contract = given.contract
    if not contract.returns:
        return
    body = [_call(given)]
    for index, result in enumerate(contract.returns):
        shape = given.sizes.shape(result.axes)
        body.append(f"assert tuple(outputs[{index}].shape) == {shape}  # {result.axes}")
    yield Claim("every_result_has_its_shape", tuple(body), always=True)


def _row_sums(given: Given) -> Iterator[Claim]:
    contract = given.contract
    if contract.weights is None or contract.reweighted:
        return
    index = contract.out_names.index(contract.weights)
    role = contract.returns[index].role
    over = contract.sums_over if len(contract.sums_over) > 1 else contract.sums_over[0]
    axes = contract.out_axes(contract.weights)
    names = "_and_".join(
        axes[i].replace("*", "_by_").replace("+", "_plus_") for i in contract.sums_over
    )
    array = f"numbers(outputs[{index}])"
    if role == "log_weights":
        array = f"np.exp({array})"
    tolerance = "1e-2" if contract.dtype in ("float16", "bfloat16") else "1e-5"
    body = [_call(given), f"total = {array}.sum({over})"]
    if contract.all_masked == "zeros":
        body.append("total = total[total > 1e-6]  # a query without keys has no weights")
    body.append(f"assert np.allclose(total, 1.0, atol={tolerance})")
    yield Claim(f"weights_sum_to_one_over_{names}", tuple(body), always=True)


def _padding(given: Given) -> Iterator[Claim]:
    contract = given.contract
    for mask in given.probe.masks.values():
        if mask.kind in ("zero_padded", "token_lists", "token_ids_pad0"):
            continue
        moved = []
        for name in given.probe.floats():
            tokens = contract.axes(name)
            if tokens[:2] == ("batch", mask.axis):
                moved.append(f'given["{name}"][pad] = 3.0')
            elif tokens[:2] == (mask.axis, "batch"):
                moved.append(f'given["{name}"][pad.T] = 3.0')
            elif tokens[:1] == (mask.axis,) and mask.real.shape[0] == 1:
                moved.append(f'given["{name}"][pad[0]] = 3.0')
        if not moved:
            continue
        body = ["given = inputs()", f"pad = ~({given.real(mask)})", "before = run(inputs())"]
        body += [*moved, "after = run(given)"]
        compared = []
        for index, result in enumerate(contract.returns):
            tokens = tuple(result.axes.split())
            if mask.axis in tokens and contract.is_self_attention:
                if tokens[:2] == ("batch", mask.axis) and tokens.count(mask.axis) == 1:
                    compared.append(
                        f"assert same(after[{index}][~pad], before[{index}][~pad])"
                        "  # rows of real queries"
                    )
                continue
            if contract.query_axis == mask.axis:
                continue
            compared.append(f"assert same(after[{index}], before[{index}])")
        if compared:
            yield Claim(
                f"what_stands_on_padding_of_{mask.axis}_has_no_influence",
                (*body, *compared),
            )


def _causal(given: Given) -> Iterator[Claim]:
    contract = given.contract
    axis = contract.query_axis
    if not contract.causal or axis is None:
        return
    moved, compared = [], []
    for name in given.probe.floats():
        tokens = contract.axes(name)
        for i, token in enumerate(tokens):
            if (token == axis or token.endswith(f"+{axis}")) and not given.probe.is_parameter(
                name
            ):
                where = ", ".join([":"] * i + ["-1"])
                moved.append(f'given["{name}"][{where}] = 2.0')
                break
    for index, result in enumerate(contract.returns):
        tokens = tuple(result.axes.split())
        if axis in tokens:
            where = ", ".join([":"] * tokens.index(axis) + [":-1"])
            compared.append(f"assert same(after[{index}][{where}], before[{index}][{where}])")
    if moved and compared:
        yield Claim(
            "the_last_position_has_no_influence_on_earlier_ones",
            (
                "given = inputs()",
                "before = run(inputs())",
                *moved,
                "after = run(given)",
                *compared,
            ),
        )


def _examples(given: Given) -> Iterator[Claim]:
    contract = given.contract
    moved = [
        (name, tokens.index("batch"))
        for name in given.probe.floats()
        if "batch" in (tokens := contract.axes(name))
    ]
    results = [(i, r.axes.split()) for i, r in enumerate(contract.returns)]
    if not moved or not all("batch" in axes for _, axes in results):
        return
    body = ["given = inputs()", "before = run(inputs())"]
    for name, i in moved:
        where = ", ".join([":"] * i + ["0"])
        body.append(f'given["{name}"][{where}] = 0.5')
    body.append("after = run(given)")
    for index, axes in results:
        where = ", ".join([":"] * axes.index("batch") + ["1:"])
        body.append(f"assert same(after[{index}][{where}], before[{index}][{where}])")
    yield Claim("an_example_has_no_influence_on_the_others", tuple(body))


def _alone(given: Given) -> Iterator[Claim]:
    contract = given.contract
    moved = [
        (n, contract.axes(n).index("batch")) for n in contract.inputs if _batched(given, n)
    ]
    results = [(i, r.axes.split()) for i, r in enumerate(contract.returns)]
    plain = all(tokens.count("batch") == 1 for _, tokens in results)
    if not moved or not plain or any("batch" in v for v in map(str, contract.values.values())):
        return
    body = ["given = inputs()", "together = run(inputs())"]
    for name, i in moved:
        where = ", ".join([":"] * i + [":1"])
        body.append(f'given["{name}"] = given["{name}"][{where}]')
    body.append("alone = run(given)")
    for index, tokens in results:
        where = ", ".join([":"] * tokens.index("batch") + [":1"])
        body.append(
            f"assert tuple(alone[{index}].shape) == tuple(together[{index}][{where}].shape)"
        )
        body.append(f"assert same(alone[{index}], together[{index}][{where}])")
    yield Claim("an_example_alone_gives_what_it_gives_in_a_batch", tuple(body))


def _batched(given: Given, name: str) -> bool:
    value = given.probe.args[name]
    return "batch" in given.contract.axes(name) and hasattr(value, "shape")


def _queries(given: Given) -> Iterator[Claim]:
    contract = given.contract
    if contract.query_axis is None or contract.is_self_attention or contract.positions:
        return
    axis = contract.query_axis
    names = [n for n in given.probe.floats() if axis in contract.axes(n)]
    results = [(i, r.axes.split()) for i, r in enumerate(contract.returns)]
    if len(names) != 1 or not all(axis in tokens for _, tokens in results):
        return
    at = contract.axes(names[0]).index(axis)
    where = ", ".join([":"] * at + ["0"])
    body = ["given = inputs()", "before = run(inputs())"]
    body += [f'given["{names[0]}"][{where}] = 0.5', "after = run(given)"]
    for index, tokens in results:
        where = ", ".join([":"] * tokens.index(axis) + ["1:"])
        body.append(f"assert same(after[{index}][{where}], before[{index}][{where}])")
    yield Claim("a_query_has_no_influence_on_other_queries", tuple(body))


def _order(given: Given) -> Iterator[Claim]:
    contract = given.contract
    axis = contract.key_axis
    if contract.positions or contract.causal or axis is None or given.probe.masks:
        return
    body = ["given = inputs()", "before = run(inputs())", "after_reversal = dict(given)"]
    names = [
        (n, contract.axes(n).index(axis))
        for n in given.probe.floats()
        if axis in contract.axes(n)
    ]
    if not names or given.library == "lists":
        return
    for name, at in names:
        flip = (
            f"torch.flip(given[{name!r}], [{at}])"
            if given.torch
            else (f"np.flip(given[{name!r}], {at})")
        )
        body.append(f'after_reversal["{name}"] = {flip}')
    body.append("after = run(after_reversal)")
    for index, result in enumerate(contract.returns):
        tokens = result.axes.split()
        places = tuple(i for i, token in enumerate(tokens) if token == axis)
        body.append(
            f"assert same(np.flip(numbers(after[{index}]), {places}), before[{index}])"
            if places
            else f"assert same(after[{index}], before[{index}])"
        )
    yield Claim("reversing_the_keys_reverses_the_weights_and_nothing_else", tuple(body))


def _influence(given: Given) -> Iterator[Claim]:
    if given.library == "lists":
        return
    for name in given.probe.floats():
        if given.contract.kinds.get(name):
            continue
        body = (
            "given = inputs()",
            "before = run(inputs())",
            f'given["{name}"] = inputs(seed=1)["{name}"]',
            "after = run(given)",
            "assert not all(same(a, b) for a, b in zip(after, before))",
        )
        yield Claim(f"{name}_has_influence", body)


def _context(given: Given) -> Iterator[Claim]:
    """Context = weights @ values, where both are plain results and inputs."""
    contract = given.contract
    if contract.weights is None or contract.init or len(contract.returns) != 2:
        return
    other = next(r for r in contract.returns if r.name != contract.weights)
    if other.role or contract.returns[contract.out_names.index(contract.weights)].role:
        return
    weights, context = contract.out_axes(contract.weights), tuple(other.axes.split())
    key = contract.key_axis
    for name in given.probe.floats():
        tokens = contract.axes(name)
        if (
            key in tokens
            and set(context) == (set(weights) | set(tokens)) - {key}
            and (set(context) - set(weights))
        ):
            letters = {t: chr(97 + i) for i, t in enumerate(dict.fromkeys(weights + tokens))}
            spec = ["".join(letters[t] for t in part) for part in (weights, tokens, context)]
            if len({*weights}) != len(weights) or len({*tokens}) != len(tokens):
                continue
            w, c = (contract.out_names.index(n) for n in (contract.weights, other.name))
            body = (
                _call(given),
                f'values = numbers(inputs()["{name}"])',
                f'context = np.einsum("{spec[0]},{spec[1]}->{spec[2]}", '
                f"numbers(outputs[{w}]), values)",
                f"assert same(outputs[{c}], context)",
            )
            yield Claim(f"the_context_is_the_weighted_sum_of_{name}", body)


def _formula(given: Given) -> Iterator[Claim]:
    """Weights of a dot product, where query and key are plain inputs (Vaswani, eq. 1)."""
    contract = given.contract
    if contract.weights is None or contract.score not in ("dot", "scaled_dot"):
        return
    if contract.init or given.probe.masks or contract.causal or contract.positions:
        return
    weights = contract.out_axes(contract.weights)
    names = list(given.probe.floats())
    for query, key in ((q, k) for q in names for k in names if q != k):
        q, k = contract.axes(query), contract.axes(key)
        shared = set(q) & set(k) - set(weights)
        if len(shared) != 1 or (set(q) | set(k)) - shared != set(weights):
            continue
        letters = {t: chr(97 + i) for i, t in enumerate(dict.fromkeys(q + k))}
        spec = ["".join(letters[t] for t in part) for part in (q, k, weights)]
        size = given.sizes.value(next(iter(shared)))
        scale = contract.scale or ("1" if contract.score == "dot" else f"1 / {size} ** 0.5")
        index = contract.out_names.index(contract.weights)
        body = (
            _call(given),
            "given = inputs()",
            f'scores = np.einsum("{spec[0]},{spec[1]}->{spec[2]}", '
            f'numbers(given["{query}"]), numbers(given["{key}"])) * ({scale})',
            "weights = np.exp(scores)",
            f"weights = weights / weights.sum({contract.sums_over[-1]}, keepdims=True)",
            f"assert same(outputs[{index}], weights)",
        )
        yield Claim(f"weights_are_the_softmax_of_{query}_times_{key}", body)
        return


def _repeatable(given: Given) -> Iterator[Claim]:
    body = (
        "built = build()",
        "first = run(inputs(), built)",
        "again = run(inputs(), built)",
        "assert all(same(a, b) for a, b in zip(first, again))",
    )
    yield Claim("a_second_call_gives_the_same_results", body)


def _unchanged(given: Given) -> Iterator[Claim]:
    if given.library == "lists":
        return
    body = (
        "given = inputs()",
        "run(given)",
        "for name, value in inputs().items():",
        "    if hasattr(value, 'shape'):",
        "        assert same(given[name], value), name",
    )
    yield Claim("the_arguments_are_left_as_they_were", body)


def pinned(given: Given, outputs: tuple[np.ndarray, ...]) -> Claim:
    """Some numbers of every result, from a repair that was proven another way."""
    body = [_call(given)]
    for index, output in enumerate(outputs):
        step = max(1, output.size // 10)
        some = [float(f"{x:.5g}") for x in output.reshape(-1)[::step]]
        body.append(f"some = {some}")
        body.append(f"assert same(numbers(outputs[{index}]).reshape(-1)[::{step}], some)")
    return Claim("the_results_are_those_of_the_repaired_code", tuple(body))
