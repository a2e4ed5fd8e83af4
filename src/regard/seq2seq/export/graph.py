"""Writing ONNX graphs node by node, with NumPy arrays as their constants."""

from typing import Any, TypeAlias

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from regard.seq2seq.runtime.seal import UNSEALED, sealed
from regard.version import __version__

__all__ = ["IR_VERSION", "OPSET", "Doors", "Graph", "Value", "model_bytes"]

OPSET = 17
"""Of the operators that are used; onnxruntime 1.12 and later run it."""

IR_VERSION = 8

Value: TypeAlias = str
"""The name of something in a graph."""

Doors: TypeAlias = dict[str, tuple[str, list[Any]]]
"""Inputs or outputs: name -> (type, axes)."""

_TYPES = {
    "float": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
}


class Graph:
    """Nodes and constants, in the order in which they were asked for.

    Parameters
    ----------
    prefix : str
        Of the names inside: those of a body and of the graph around it must differ.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._count = 0

    def __call__(self, op: str, *inputs: Value, **attributes: Any) -> Value:
        """Add an operator; return the name of its result."""
        return self.several(1, op, *inputs, **attributes)[0]

    def several(self, count: int, op: str, *inputs: Value, **attributes: Any) -> list[Value]:
        """Add an operator; return the names of its first so many results."""
        names = [self._name(op) for _ in range(count)]
        self._nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names

    def constant(self, array: ArrayLike) -> Value:
        """Add an array; whole numbers become int64, others float32."""
        value = np.asarray(array)
        if value.dtype.kind == "i" and value.dtype != np.int32:
            value = value.astype(np.int64)
        if value.dtype.kind == "f":
            value = value.astype(np.float32)
        value = np.ascontiguousarray(value).reshape(value.shape)
        for name, other in self._constants.items():
            if (
                other.shape == value.shape
                and other.dtype == value.dtype
                and (other == value).all()
            ):
                return name  # equal ones are stored once
        name = self._name("constant")
        self._constants[name] = value
        return name

    def called(self, value: Value, name: str) -> Value:
        """Give something the name that the graph's outputs have."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        return name

    def linear(
        self, values: Value, weight: NDArray[Any], bias: NDArray[Any] | None = None
    ) -> Value:
        """Add x W^T + b."""
        found = self("MatMul", values, self.constant(weight.T))
        return found if bias is None else self("Add", found, self.constant(bias))

    def part(self, values: Value, start: int, end: int) -> Value:
        """Add the entries from `start` up to `end` of the last axis."""
        axis = self.constant([-1])
        return self("Slice", values, self.constant([start]), self.constant([end]), axis)

    def squeeze(self, values: Value, axis: int) -> Value:
        """Take an axis of one away."""
        return self("Squeeze", values, self.constant([axis]))

    def unsqueeze(self, values: Value, axis: int) -> Value:
        """Put an axis of one in."""
        return self("Unsqueeze", values, self.constant([axis]))

    def built(self, name: str, inputs: Doors, outputs: Doors) -> Any:
        """Return the graph."""
        return helper.make_graph(
            self._nodes,
            name,
            [_declared(*each) for each in inputs.items()],
            [_declared(*each) for each in outputs.items()],
            [numpy_helper.from_array(value, key) for key, value in self._constants.items()],
        )

    def _name(self, op: str) -> str:
        self._count += 1
        return f"{self._prefix}{op.lower()}_{self._count}"


def model_bytes(graph: Any, metadata: dict[str, str]) -> bytes:
    """Return a graph as a file with a check sum, checked for what the standard asks."""
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="regard",
        producer_version=__version__,
    )
    helper.set_model_props(model, metadata | UNSEALED)
    onnx.checker.check_model(model, full_check=True)
    return sealed(model.SerializeToString(deterministic=True))


def _declared(name: str, kind: tuple[str, list[Any]]) -> Any:
    return helper.make_tensor_value_info(name, _TYPES[kind[0]], kind[1])
