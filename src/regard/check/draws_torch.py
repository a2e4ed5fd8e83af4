"""PyTorch's draws held at their means, below everything that calls them."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["Held"]


class Held(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs each operation and, where it drew, puts means in the place of what was drawn.

    Means rather than medians or nothing: ``-log(exponential)`` is then 0, so that a Gumbel
    softmax is a softmax, and a mask of Bernoulli draws over its rate is 1.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled here, and keeping the compiler away imports all of it.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        mean = _MEANS.get(func._schema.name.removeprefix("aten::"))
        if mean is None:
            return func(*args, **given)
        names = [a.name for a in func._schema.arguments]
        defaults = {a.name: a.default_value for a in func._schema.arguments}
        known = {**defaults, **dict(zip(names, args, strict=False)), **given}
        before = known["self"].clone() if isinstance(known.get("self"), torch.Tensor) else None
        drawn = func(*args, **given)
        return mean(drawn, {**known, "before": before})


def _all(value: Callable[[Mapping[str, Any]], Any]) -> Callable[[Any, Mapping[str, Any]], Any]:
    """Every entry is one number, or the entries of one tensor."""

    def fill(drawn: Any, given: Mapping[str, Any]) -> Any:
        mean = value(given)
        if not drawn.is_floating_point() and not drawn.is_complex():
            # Numbers of whole steps, and truth: the nearest.
            mean = mean.round() if isinstance(mean, torch.Tensor) else round(float(mean))
        return drawn.copy_(mean) if isinstance(mean, torch.Tensor) else drawn.fill_(mean)

    return fill


def _order(drawn: Any, given: Mapping[str, Any]) -> Any:
    del given
    return drawn.copy_(torch.arange(drawn.numel(), device=drawn.device))


def _likeliest(drawn: Any, given: Mapping[str, Any]) -> Any:
    chances, count = given["before"], int(given["num_samples"])
    if given.get("replacement"):
        return drawn.copy_(chances.argmax(dim=-1, keepdim=True).expand(drawn.shape))
    return drawn.copy_(chances.topk(count, dim=-1).indices)


def _undropped(drawn: Any, given: Mapping[str, Any]) -> Any:
    return drawn[0].copy_(given["before"]), drawn[1].fill_(True)


def _middle(given: Mapping[str, Any]) -> int:
    """The middle of whole numbers from ``low`` to below ``high``."""
    low = given.get("low", given.get("from")) or 0
    high = given.get("high", given.get("to"))
    return (int(low) + int(high) - 1) // 2 if high is not None else 1


_MEANS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    **dict.fromkeys(("rand", "rand_like"), _all(lambda g: 0.5)),
    **dict.fromkeys(("randn", "randn_like"), _all(lambda g: 0.0)),
    "uniform_": _all(lambda g: (g["from"] + g["to"]) / 2),
    "normal_": _all(lambda g: g["mean"]),
    "normal": _all(lambda g: g["mean"]),
    "exponential_": _all(lambda g: 1.0 / g["lambd"]),
    "cauchy_": _all(lambda g: g["median"]),
    "log_normal_": _all(lambda g: torch.tensor(g["mean"] + g["std"] ** 2 / 2).exp().item()),
    "geometric_": _all(lambda g: 1.0 / g["p"]),
    "bernoulli_": _all(lambda g: g["p"]),
    "bernoulli": _all(lambda g: g["before"] if g.get("p") is None else g["p"]),
    "poisson": _all(lambda g: g["before"]),
    "_standard_gamma": _all(lambda g: g["before"]),
    **dict.fromkeys(("random_", "randint", "randint_like"), _all(_middle)),
    "randperm": _order,
    "multinomial": _likeliest,
    "native_dropout": _undropped,
}
