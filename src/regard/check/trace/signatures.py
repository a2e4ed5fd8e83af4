"""One name for each operation and for each of its arguments, whatever the spelling.

``a @ b``, ``np.matmul(a, b)`` and ``torch.matmul(a, b)`` are all ``matmul``; ``axis`` is
``dim``, ``keepdims`` is ``keepdim``.
"""

from typing import Any

__all__ = ["CONTRACTIONS", "ELEMENTWISE", "REDUCTIONS", "named", "operation"]

_SAME = {
    **{"true_divide": "div", "divide": "div", "truediv": "div", "multiply": "mul"},
    **{"subtract": "sub", "negative": "neg", "power": "pow", "absolute": "abs"},
    **{"bitwise_not": "invert", "logical_not": "invert", "concat": "cat", "concatenate": "cat"},
    **{"swapaxes": "transpose", "swapdims": "transpose", "adjoint": "mT", "t": "T", "H": "T"},
    **{"matrix_transpose": "mT", "expand_dims": "unsqueeze", "broadcast_to": "expand"},
    **{"moveaxis": "movedim", "amax": "max", "amin": "min", "maximum": "max2"},
    **{"minimum": "min2", "fmax": "max2", "fmin": "min2", "mul_sum": "mul"},
    **{"array_split": "split", "tensor_split": "split", "hsplit": "split", "vsplit": "split"},
    **{"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"},
    **{"equal": "eq", "not_equal": "ne", "bitwise_and": "and", "logical_and": "and"},
    **{"bitwise_or": "or", "logical_or": "or", "tile": "repeat", "view_as": "view"},
    **{"reshape_as": "reshape", "expand_as": "expand", "alpha_dropout": "dropout"},
    **{"feature_dropout": "dropout", "special_softmax": "softmax", "ravel": "flatten"},
    **{"special_log_softmax": "log_softmax", "nansum": "sum", "hstack": "cat"},
    **{"float": "to", "double": "to", "half": "to", "bool": "to", "long": "to", "int": "to"},
    **{"type": "to", "type_as": "to", "astype": "to", "bfloat16": "to", "byte": "to"},
    **{"special_expit": "sigmoid", "copy": "clone", "asarray": "to"},
}
_REFLECTED = {
    "rdiv",
    "radd",
    "rsub",
    "rmul",
    "rtruediv",
    "rmatmul",
    "rpow",
    "rand",
    "ror",
    "rxor",
}
_PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("softmax", "log_softmax", "softmin", "cumsum", "cumprod"), ("dim",)),
    **dict.fromkeys(
        ("sum", "mean", "max", "min", "std", "var", "logsumexp", "norm", "any", "all", "prod"),
        ("dim", "keepdim"),
    ),
    **dict.fromkeys(("argmax", "argmin", "argsort", "sort", "unsqueeze"), ("dim",)),
    **dict.fromkeys(("squeeze", "unbind", "cat", "stack", "flip"), ("dim",)),
    **dict.fromkeys(("triu", "tril"), ("diagonal",)),
    "transpose": ("dim0", "dim1"),
    "movedim": ("source", "destination"),
    "chunk": ("chunks", "dim"),
    "split": ("sections", "dim"),
    "repeat_interleave": ("repeats", "dim"),
    "flatten": ("start_dim", "end_dim"),
    "unflatten": ("dim", "sizes"),
    "masked_fill": ("value",),
    "dropout": ("p", "training"),
    "select": ("dim", "index"),
    "narrow": ("dim", "start", "length"),
    "index_select": ("dim",),
    "gather": ("dim",),
    "roll": ("shifts", "dim"),
    "diagonal": ("offset", "dim1", "dim2"),
    "einsum": ("equation",),
    "getitem": ("index",),
    "setitem": ("index",),
    "tensordot": ("dims",),
}
_ALL_AFTER = {"view": "shape", "reshape": "shape", "expand": "shape", "permute": "dims"}
_ALL_AFTER |= {"repeat": "repeats"}
_ALIASES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "axes": "dims",
    "indices_or_sections": "sections",
}
_ALIASES |= {
    "split_size_or_sections": "sections",
    "axis1": "dim0",
    "axis2": "dim1",
    "reps": "repeats",
}
_ALIASES |= {"newshape": "shape", "size": "shape", "split_size": "sections", "k": "diagonal"}
_ALIASES |= {"a_min": "min", "a_max": "max", "subscripts": "equation"}

CONTRACTIONS = frozenset(
    {
        "matmul",
        "bmm",
        "mm",
        "mv",
        "dot",
        "inner",
        "vdot",
        "einsum",
        "baddbmm",
        "addmm",
        "linear",
    }
    | {"tensordot", "addbmm", "outer", "multi_dot", "chain_matmul", "bilinear", "vecdot"}
)
ELEMENTWISE = frozenset(
    {"add", "sub", "mul", "div", "pow", "neg", "exp", "log", "tanh", "sigmoid", "relu", "abs"}
    | {"sqrt", "rsqrt", "reciprocal", "max2", "min2", "clamp", "clip", "where", "masked_fill"}
    | {"invert", "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "to", "dropout"}
    | {"nan_to_num", "isnan", "isinf", "isfinite", "floor_divide", "remainder", "cos", "sin"}
    | {"contiguous", "clone", "detach", "softplus", "gelu", "silu", "elu", "leaky_relu", "erf"}
    | {"softmax", "log_softmax", "softmin", "cumsum", "cumprod", "tril", "triu", "layer_norm"}
    | {
        "normalize",
        "addcmul",
        "lerp",
        "square",
        "sign",
        "exp2",
        "expm1",
        "log1p",
        "flip",
        "roll",
    }
    | {
        "identity",
        "floor",
        "round",
        "fill",
        "zeros_like",
        "ones_like",
        "full_like",
        "rand_like",
    }
    | {"setitem", "scatter", "logsigmoid", "masked_scatter", "subtract", "real", "data"}
)
REDUCTIONS = frozenset(
    {"sum", "mean", "max", "min", "std", "var", "logsumexp", "norm", "any", "all", "prod"}
    | {"argmax", "argmin", "median"}
)


def operation(name: str) -> tuple[str, bool, bool]:
    """Return an operation's one name, whether it works in place, whether operands are reversed.

    >>> operation("__rsub__"), operation("masked_fill_"), operation("true_divide")
    (('sub', False, True), ('masked_fill', True, False), ('div', False, False))
    """
    inplace = reversed_ = False
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
        if name in _REFLECTED:
            name, reversed_ = name[1:], True
        elif name != "invert" and name.startswith("i") and name[1:] in _INPLACE:
            name, inplace = name[1:], True
    elif name.endswith("_") and not name.startswith("_"):
        name, inplace = name.rstrip("_"), True
    if name == "setitem":
        inplace = True
    return _SAME.get(name, name), inplace, reversed_


_INPLACE = {"add", "sub", "mul", "truediv", "matmul", "pow", "and", "or", "xor", "floordiv"}


def named(op: str, positional: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    """Give the arguments that are no tensors their names.

    >>> named("permute", [0, 2, 1], {})
    {'dims': (0, 2, 1)}
    >>> named("sum", [], {"axis": -1, "keepdims": True})
    {'dim': -1, 'keepdim': True}
    """
    found: dict[str, Any] = {}
    if op in _ALL_AFTER and positional:
        rest = positional
        if len(rest) == 1 and isinstance(rest[0], list | tuple):
            rest = list(rest[0])
        found[_ALL_AFTER[op]] = tuple(rest)
    else:
        names = _PARAMETERS.get(op, ())
        for i, value in enumerate(positional):
            found[names[i] if i < len(names) else f"arg{i}"] = value
    for key, value in keywords.items():
        found[_ALIASES.get(key, key)] = value
    return found
