"""PyTorch: every call of its Python interface passes a function mode, which notes it."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from regard.check.trace import fused
from regard.check.trace.contraction import equation
from regard.check.trace.recorder import Recorder
from regard.check.trace.records import Node
from regard.check.trace.signatures import named, operation

__all__ = ["TorchRecording", "declare_module"]

_PROPERTIES = frozenset({"T", "mT", "H", "mH", "data", "real"})
_UNSEEN = frozenset(
    {"dim", "numel", "nelement", "stride", "is_contiguous", "dtype", "device", "requires_grad_"}
    | {"__len__", "__repr__", "__format__", "__bool__", "__int__", "__float__", "__index__"}
    | {"item", "tolist", "is_floating_point", "get_device", "backward", "allclose", "equal"}
    | {"is_complex", "data_ptr", "storage", "untyped_storage", "__hash__", "numpy", "has_names"}
    | {"__contains__", "finfo", "iinfo", "manual_seed", "ndimension", "is_same_size", "type"}
)
_FUSED = {
    "scaled_dot_product_attention": fused.scaled_dot_product,
    "multi_head_attention_forward": fused.multi_head,
}


class TorchRecording(TorchFunctionMode):
    """Notes each function that user code calls; library code inside one counts as one."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = dict(kwargs or {})
        name = _name(func)
        inside = _FUSED.get(name)
        if inside is not None:
            result = self._run(func, name, args, keywords)
            try:
                return inside(self.recorder, result, args, keywords)
            except Exception:  # a call form we do not know: one operation like any other
                return self._noted(name, result, args, keywords)
        result = self._run(func, name, args, keywords)
        try:
            return self._noted(name, result, args, keywords)
        except Exception:
            return result

    def _run(
        self,
        func: Callable[..., Any],
        name: str,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        try:
            return func(*args, **keywords)
        except Exception:
            with contextlib.suppress(Exception):  # the user's exception is the one that counts
                op, _, turned = operation(name)
                inputs, arguments = self._operands(op, args, keywords, turned)
                self.recorder.fail(op, inputs, arguments)
            raise

    def _noted(self, name: str, result: Any, args: tuple[Any, ...], keywords: Any) -> Any:
        if name in ("size", "shape"):
            self._size(args, keywords, result)
            return result
        if name in _UNSEEN:
            return result
        results = list(_tensors(result))
        op, inplace, turned = operation(name)
        if inplace and args and isinstance(args[0], torch.Tensor):
            results = [args[0]]
        if not results:
            return result
        inputs, arguments = self._operands(op, args, keywords, turned)
        if name in ("view_as", "reshape_as", "expand_as"):
            arguments["shape"] = inputs[-1].shape
            inputs = inputs[:-1]
        _say_defaults(op, inplace, arguments)
        written = equation(op, inputs, arguments)
        if written is not None:
            arguments["written"] = written
        nodes = []
        for i, one in enumerate(results):
            more = {**arguments, "output": i} if len(results) > 1 else dict(arguments)
            node = self.recorder.note(op, one, inputs, more)
            if node is not None:
                nodes.append(node)
        if inplace:
            self._write_through(args[0], nodes)
        if len(nodes) == 1 and len(results) == 1:
            return self._site(nodes[0], result, inplace)
        return result

    def _site(self, node: Node, result: Any, inplace: bool) -> Any:
        site = self.recorder.site(node)
        if site is None or self.recorder.replace is None:
            return result
        log = node.op == "log_softmax"
        value = torch.from_numpy(node.value)
        other = self.recorder.other_weights(site, (value.exp() if log else value).numpy())
        if other is None:
            return result
        fresh = torch.from_numpy(other).to(result.dtype)
        fresh = fresh.log() if log else fresh
        if inplace:
            result.copy_(fresh)
            fresh = result
        again = self.recorder.note(node.op, fresh, node.inputs, node.arguments)
        if again is not None:
            site.weights = again
        return fresh

    def _write_through(self, tensor: Any, nodes: list[Node]) -> None:
        """Writing into a view writes into what it is a view of."""
        base = tensor._base
        if base is None or not nodes:
            return
        before = self.recorder.find(base)
        if before is not None:
            self.recorder.note(nodes[0].op, base, (before, *nodes), {"inplace": True})

    def _operands(
        self, op: str, args: tuple[Any, ...], keywords: dict[str, Any], turned: bool
    ) -> tuple[tuple[Node, ...], dict[str, Any]]:
        found: list[Node] = []
        plain: list[Any] = []
        for value in args:
            if isinstance(value, torch.Tensor):
                found.append(self.recorder.operand(value))
            elif tensors := list(_tensors(value)):
                found += [self.recorder.operand(t) for t in tensors]
                if op in ("getitem", "setitem"):
                    plain.append(_index(value))
            else:
                plain.append(value)
        if op in ("getitem", "setitem") and len(args) > 1 and not plain:
            plain.append(_index(args[1]))  # a tensor alone is the index
        rest: dict[str, Any] = {}
        for key, value in keywords.items():
            tensors = list(_tensors(value))
            if tensors:
                found += [self.recorder.operand(t) for t in tensors]
                rest[f"{key} at"] = len(found) - len(tensors)
            else:
                rest[key] = value
        if turned and len(found) == 2:
            found.reverse()
        arguments = named(op, plain, rest)
        if turned:
            arguments["turned"] = True  # a number came first: 1 / x, 1 - x
        return tuple(found), arguments

    def _size(self, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> None:
        axis = keywords.get("dim", args[1] if len(args) > 1 else None)
        if isinstance(axis, int):
            self.recorder.read(args[0], axis % args[0].dim(), int(result))
        else:
            self.recorder.read(args[0], None, 0)


def _say_defaults(op: str, inplace: bool, arguments: dict[str, Any]) -> None:
    if inplace:
        arguments["inplace"] = True
    if op == "softmax" and arguments.get("dim") is None:
        arguments["dim"] = "implicit"
    if op == "dropout":
        arguments.setdefault("training", True)


def declare_module(recorder: Recorder, module: Any) -> None:
    """Note a module's parameters and buffers."""
    for name, parameter in module.named_parameters():
        node = recorder.declare(parameter, "param", f"self.{name}", f"param:{name}")
        recorder.trace.params[name] = node
    for name, buffer in module.named_buffers():
        if isinstance(buffer, torch.Tensor):
            recorder.declare(buffer, "buffer", f"self.{name}", f"buffer:{name}")


def _name(func: Callable[..., Any]) -> str:
    name: str = getattr(func, "__name__", "")
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", "")
        return name if name in _PROPERTIES or name == "shape" else "dtype"
    return name


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _index(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, tuple):
        return tuple(_index(v) for v in value)
    if isinstance(value, list):
        return "tensor"
    return value
