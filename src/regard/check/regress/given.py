"""Source text that makes a probe's inputs again, in the user's own library.

The text must stand alone: it may use torch or NumPy, whichever the user's module uses, and
nothing of regard.
"""

from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.probe import Mask, Probe
from regard.check.sizes import Sizes

__all__ = ["Given"]


class Given:
    """Writes the inputs of a call as source text.

    Parameters
    ----------
    contract : Contract
        Axes and kinds of the arguments.
    sizes : Sizes
        Sizes of the named axes.
    library : str
        ``"torch"``, ``"numpy"`` or ``"lists"``.
    """

    def __init__(self, contract: Contract, sizes: Sizes, library: str) -> None:
        self.contract, self.sizes, self.library = contract, sizes, library
        self.probe = Probe(contract, sizes, choice=0)

    @property
    def torch(self) -> bool:
        """Whether the text is PyTorch's."""
        return self.library == "torch"

    def text(self) -> str:
        """The function ``inputs(seed=0)``."""
        lines = ["def inputs(seed=0):"]
        if self.torch:
            lines.append("    random = torch.Generator().manual_seed(seed)")
        else:
            lines.append("    random = np.random.default_rng(seed)")
        lines.append("    return {")
        for name, axes in self.contract.inputs.items():
            made = self._value(name, axes)
            lines.append(f'        "{name}": {made},' + (f"  # {axes}" if axes else ""))
        lines.append("    }")
        return "\n".join(lines)

    def real(self, mask: Mask) -> str:
        """An expression: True on real positions, (batch, axis) or (1, axis)."""
        rows = [[int(i) for i in np.flatnonzero(row)] for row in mask.real]
        n = mask.real.shape[-1]
        array = "torch.arange" if self.torch else "np.arange"
        make = "torch.tensor" if self.torch else "np.array"
        if self.contract.padding == "left":
            firsts = [row[0] for row in rows]
            return f"{array}({n}) >= {make}({firsts})[:, None]"
        return f"{array}({n}) < {make}({[len(row) for row in rows]})[:, None]"

    def _value(self, name: str, axes: str) -> str:  # noqa: PLR0911 - one a kind
        if name in self.contract.values:
            return repr(self.probe.args[name])
        kind = self.contract.kinds.get(name)
        shape = self.sizes.shape(axes)
        if kind is None or kind == "bias":
            return self._floats(shape, self._spread(name, shape))
        if kind in ("token_ids",) or kind.startswith("indices:"):
            low = 1 if kind == "token_ids" else 0
            high = self.sizes["vocab" if kind == "token_ids" else kind[8:]]
            return self._integers(low, high, shape)
        if kind == "weights":
            floats = self._floats(shape, 1.0)
            if self.torch:
                return f"torch.softmax({floats}, dim=-1)"
            return f"np.random.default_rng(seed).dirichlet(np.ones({shape[-1]}), {shape[:-1]})"
        if kind == "state_tuple":
            one = self._floats(shape, 0.7)
            return f"({one}, {one})"
        if name in self.probe.masks and kind not in ("token_lists", "additive"):
            return self._masked(name, kind, shape)
        return self._literal(self.probe.args[name])

    def _masked(self, name: str, kind: str, shape: tuple[int, ...]) -> str:
        mask = self.probe.masks[name]
        real = self.real(mask)
        if kind == "lengths":
            return self._literal(self.probe.args[name])
        if kind == "zero_padded":
            cast = ".float()" if self.torch else ""
            return f"{self._floats(shape, 1.0)} * ({real})[..., None]{cast}"
        if kind == "token_ids_pad0":
            return f"{self._integers(1, self.sizes['vocab'], shape)} * ({real})"
        inner = "".join(", None" for _ in range(len(shape) - 2))
        middle = f"[:{inner}]" if inner else ""
        wide = f"({real}){middle}" if len(shape) > 1 else f"({real})[0]"
        want = (mask.real.shape[0], *([1] * (len(shape) - 2)), shape[-1])
        if len(shape) > 1 and tuple(shape) != want:
            grow = f".expand{shape}" if self.torch else ""
            wide = f"{wide}{grow}" if self.torch else f"np.broadcast_to({wide}, {shape})"
        forms = {
            "keep": wide,
            "drop": f"~({wide})",
            "keep_int": f"({wide}).{'long()' if self.torch else 'astype(np.int64)'}",
            "drop_int": f"(~({wide})).{'long()' if self.torch else 'astype(np.int64)'}",
            "keep_uint8": f"({wide}).{'byte()' if self.torch else 'astype(np.uint8)'}",
            "keep_float01": f"({wide}).{self._cast()}",
            "drop_float01": f"(~({wide})).{self._cast()}",
        }
        return forms[kind]

    def _cast(self) -> str:
        kind = self.contract.dtype
        return f"to(torch.{kind})" if self.torch else f"astype(np.{kind})"

    def _spread(self, name: str, shape: tuple[int, ...]) -> float:
        if self.probe.is_parameter(name) and shape:
            return round(float(1.3 / max(shape) ** 0.5), 2)
        return 0.6 if self.contract.score in ("dot", "general") else 1.0

    def _floats(self, shape: tuple[int, ...], spread: float) -> str:
        times = "" if spread == 1.0 else f"{spread} * "
        if not self.torch:
            made = f"{times}random.standard_normal({shape})"
            return f"({made}).tolist()" if self.library == "lists" else made
        inside = ", ".join(map(str, shape))
        made = f"{times}torch.randn({inside}, generator=random)"
        if self.contract.dtype != "float32":
            made = f"({made}).to(torch.{self.contract.dtype})"
        return made

    def _integers(self, low: int, high: int, shape: tuple[int, ...]) -> str:
        if self.torch:
            return f"torch.randint({low}, {high}, {shape}, generator=random)"
        return f"random.integers({low}, {high}, {shape})"

    def _literal(self, value: Any) -> str:
        if not isinstance(value, np.ndarray):
            return repr(value)
        listed = value.tolist()
        if self.library == "lists":
            return repr(listed)
        if self.torch:
            kind = f", dtype=torch.{self.contract.dtype}" if value.dtype.kind == "f" else ""
            return f"torch.tensor({listed}{kind})"
        return f"np.array({listed})"
