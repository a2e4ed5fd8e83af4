"""A PyTorch module as a case: name the part that computes the weights.

Two kinds of parts are known. A module that returns the weights, as ``nn.Softmax`` or a class of
your own: what it returns is caught, and replaced when the audit tries other weights. And
``nn.MultiheadAttention``, whose context is computed again from replaced weights.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.audit.inputs import Input
from regard.audit.protocol import Numbers
from regard.errors import ConventionError, ShapeError, explain

__all__ = ["TorchCase", "from_torch"]

Encode = Callable[[list[list[str]]], Any]


class TorchCase:
    """A module, how tokens become its arguments, and which part's weights are shown.

    Parameters
    ----------
    module : nn.Module
        Put into evaluation mode.
    encode : callable
        Takes lists of tokens, returns the module's arguments: a tensor, a tuple of them, or a
        mapping of keywords.
    attention : str
        Name of the part, as ``module.named_modules()`` has it.
    head : int, optional
        Where the weights have several heads. Left out, the heads' average is shown, which G0
        stops unless all heads are the same.
    row : int, optional
        Where there is one row of weights a query: which one; negative counts from the end of
        the padded batch.
    embedding : str, optional
        Name of the part that embeds tokens, for gradients.
    answer : callable, optional
        From what the module returns to logits (batch, classes) or (batch, 1), or probabilities
        where `probabilities`; by default what it returns, or the first of several.
    probabilities : bool
        Whether the module returns probabilities.
    mask_token : str, optional
    classes : sequence of str, optional
    name : str, optional

    Raises
    ------
    ConventionError
        The module has no part of that name.
    """

    reads_before = False

    def __init__(
        self,
        module: nn.Module,
        encode: Encode,
        attention: str,
        *,
        head: int | None = None,
        row: int | None = None,
        embedding: str | None = None,
        answer: Callable[[Any], Tensor] | None = None,
        probabilities: bool = False,
        mask_token: str | None = None,
        classes: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        self.module = module.eval()
        self.mask_token = mask_token
        self.classes = classes
        self._encode, self._answer, self._probabilities = encode, answer, probabilities
        self._head, self._row = head, row
        self._part = _part(module, attention)
        self._embedding = None if embedding is None else _part(module, embedding)
        where = "" if head is None else f", head {head}"
        self.name = name or f"{type(module).__name__}, weights of {attention}{where}"
        if self._embedding is not None:
            self.token_gradient = self._token_gradient
        if head is None:
            self.heads = self._heads

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, classes)."""
        with torch.no_grad():
            return _numbers(self._run(batch))

    def weights(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the weights (T_enc,) of each input, those on padding left out."""
        rows = self._rows(self._caught(batch))
        # Weight on padding is left out, so that its sum tells: G0 looks.
        return [row[: len(one.tokens)] for one, row in zip(batch, rows, strict=True)]

    def predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, classes) with other weights in the part."""
        with torch.no_grad(), self._watched(given=weights):
            return _numbers(self._run(batch))

    def _heads(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return (heads, T_enc) of each input: what the weights are the average of."""
        caught = self._caught(batch)
        several = caught.unbind(1) if caught.ndim == 4 else [caught]
        rows = [self._rows(one) for one in several]
        return [
            np.stack([row[place, : len(one.tokens)] for row in rows])
            for place, one in enumerate(batch)
        ]

    def _caught(self, batch: Sequence[Input]) -> Tensor:
        with torch.no_grad(), self._watched() as seen:
            self._run(batch)
        if not seen:
            raise ConventionError(
                explain(
                    f"{self.name}: the part did not run",
                    expected="a part that the module calls once for each batch",
                    got="no call",
                )
            )
        return seen[-1].detach().double().cpu()

    def _token_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return abs(input x gradient) of the predicted class (T_enc,), all weights held."""
        assert self._embedding is not None  # or this were no method of the case
        embedded: list[Tensor] = []

        def keep(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            leaf = output.detach().requires_grad_()
            embedded.append(leaf)
            return leaf

        handle = self._embedding.register_forward_hook(keep)
        try:
            with torch.enable_grad(), self._watched(cut=True):
                p = self._run(batch).amax(-1).sum()
                (gradient,) = torch.autograd.grad(p, embedded[0])
        finally:
            handle.remove()
        rows = (gradient * embedded[0].detach()).sum(-1).abs().double().cpu().numpy()
        return [row[: len(one.tokens)] for one, row in zip(batch, rows, strict=True)]

    def _run(self, batch: Sequence[Input]) -> Tensor:
        arguments = self._encode([list(one.tokens) for one in batch])
        if isinstance(arguments, Mapping):
            returned = self.module(**arguments)
        elif isinstance(arguments, tuple | list):
            returned = self.module(*arguments)
        else:
            returned = self.module(arguments)
        if self._answer is not None:
            returned = self._answer(returned)
        elif isinstance(returned, tuple | list):
            returned = returned[0]
        return _distribution(returned, self._probabilities)

    def _rows(self, caught: Tensor) -> Numbers:
        weights = caught
        if weights.ndim == 4 and self._head is None:
            weights = weights.mean(1)
        elif weights.ndim == 4:
            weights = weights[:, self._within("head", self._head, weights.shape[1])]
        if weights.ndim == 3:
            weights = self._one_row(weights)
        if weights.ndim != 2:
            raise ShapeError(
                explain(
                    f"{self.name}: these are no weights",
                    expected="(batch, T), (batch, T_dec, T_enc), (batch, heads, T_dec, T_enc)",
                    got=f"{tuple(caught.shape)}",
                )
            )
        found: Numbers = weights.numpy()
        return found

    def _one_row(self, weights: Tensor) -> Tensor:
        if 1 in weights.shape[1:]:
            return weights[:, 0] if weights.shape[1] == 1 else weights[..., 0]
        if self._row is None:
            raise ConventionError(
                explain(
                    f"{self.name}: which row of weights is shown?",
                    expected="row=the query whose weights are shown",
                    got=f"weights {tuple(weights.shape)} and no `row`",
                )
            )
        return weights[:, self._within("row", self._row, weights.shape[1])]

    def _within(self, what: str, number: int | None, count: int) -> int:
        if number is None or not -count <= number < count:
            raise ConventionError(
                explain(
                    f"{self.name}: there is no such {what}",
                    expected=f"{-count} to {count - 1}",
                    got=f"{what}={number}",
                )
            )
        return number

    @contextmanager
    def _watched(
        self, *, given: Sequence[Numbers] | None = None, cut: bool = False
    ) -> Iterator[list[Tensor]]:
        """Catch the weights while the block runs, and replace them where others are given."""
        seen: list[Tensor] = []

        def hook(
            module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
        ) -> Any:
            if isinstance(module, nn.MultiheadAttention):
                _, found = module.forward(
                    *args, **{**kwargs, "need_weights": True, "average_attn_weights": False}
                )
                assert found is not None  # asked for
                weights = found
            else:
                weights = output[1] if isinstance(output, tuple | list) else output
            seen.append(weights)
            if given is None and not cut:
                return None
            other = weights.detach().clone()
            if given is not None:
                self._put(other, given)
            if isinstance(module, nn.MultiheadAttention):
                value = args[2] if len(args) > 2 else kwargs["value"]
                return _context(module, value, other), output[1]
            if isinstance(output, tuple | list):
                raise ConventionError(
                    explain(
                        f"{self.name}: its weights come out beside a context made of them",
                        expected="the part that returns the weights alone, as its softmax",
                        got=type(module).__name__,
                        because="other weights can only be put in before they are used",
                    )
                )
            return other

        handle = self._part.register_forward_hook(hook, with_kwargs=True)
        try:
            yield seen
        finally:
            handle.remove()

    def _put(self, weights: Tensor, given: Sequence[Numbers]) -> None:
        for place, own in enumerate(given):
            row = torch.zeros(weights.shape[-1], dtype=weights.dtype, device=weights.device)
            if weights.ndim == 3 and weights.shape[-1] == 1 and weights.shape[1] != 1:
                row = torch.zeros(weights.shape[1], dtype=weights.dtype, device=weights.device)
            row[: len(own)] = torch.as_tensor(np.asarray(own), dtype=weights.dtype)
            one = weights[place]
            if one.ndim == 3:
                heads = slice(None) if self._head is None else self._head
                one[heads, 0 if one.shape[1] == 1 else self._row] = row
            elif one.ndim == 2 and one.shape[0] == 1:
                one[0] = row
            elif one.ndim == 2 and one.shape[1] == 1:
                one[:, 0] = row
            elif one.ndim == 2:
                one[self._row] = row
            else:
                one[:] = row


def from_torch(module: nn.Module, encode: Encode, attention: str, **options: Any) -> TorchCase:
    """Return the case of a PyTorch module; arguments as :class:`TorchCase` takes them."""
    return TorchCase(module, encode, attention, **options)


def _part(module: nn.Module, name: str) -> nn.Module:
    parts: dict[str, nn.Module] = dict(module.named_modules())
    if name not in parts or not name:
        known = [known for known in parts if known]
        raise ConventionError(
            explain(
                f"from_torch(): {type(module).__name__} has no part {name!r}",
                expected="one of "
                + ", ".join(known[:12])
                + (", ..." if len(known) > 12 else ""),
                got=repr(name),
            )
        )
    return parts[name]


def _context(module: nn.MultiheadAttention, value: Tensor, weights: Tensor) -> Tensor:
    """Return what the attention returns with these weights (batch, heads, T_dec, T_enc)."""
    if not module.batch_first:
        value = value.transpose(0, 1)
    d = module.embed_dim
    bias = None if module.in_proj_bias is None else module.in_proj_bias[2 * d :]
    W = (
        module.v_proj_weight
        if module.in_proj_weight is None
        else module.in_proj_weight[2 * d :]
    )
    projected = functional.linear(value, W, bias)
    heads = projected.reshape(*projected.shape[:2], module.num_heads, -1).transpose(1, 2)
    joined = (weights @ heads).transpose(1, 2).flatten(2)
    found: Tensor = module.out_proj(joined)
    return found if module.batch_first else found.transpose(0, 1)


def _distribution(returned: Tensor, probabilities: bool) -> Tensor:
    outputs = returned.double()
    if outputs.ndim == 1:
        outputs = outputs[:, None]
    if outputs.shape[-1] == 1:
        last = outputs if probabilities else outputs.sigmoid()
        return torch.cat([1 - last, last], dim=-1)
    return outputs if probabilities else outputs.softmax(-1)


def _numbers(found: Tensor) -> Numbers:
    table: Numbers = found.detach().cpu().numpy()
    return table
