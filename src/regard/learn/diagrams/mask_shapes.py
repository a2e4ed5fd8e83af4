"""What masks look like, drawn from the masks that regard makes."""

import numpy as np

from regard.attention import masks
from regard.learn.diagrams.drawing import Drawing

__all__ = ["mask_shapes"]

_SIDE = 20
_T_DEC, _T_ENC = 5, 7


def mask_shapes() -> str:
    """Draw a padding mask, two causal ones and a window over five queries and seven keys."""
    like = np.zeros((_T_DEC, _T_ENC))
    grids = {
        "padding: 4 keys": masks.from_lengths(np.array([4]), T_dec=_T_DEC, T_enc=_T_ENC)[0],
        "causal, top left": masks.causal(_T_DEC, _T_ENC, corner="top_left", like=like),
        "causal, bottom right": masks.causal(_T_DEC, _T_ENC, corner="bottom_right", like=like),
        "window: 1 each side": masks.window(_T_DEC, _T_ENC, left=1, right=1, like=like),
    }
    drawing = Drawing(
        700,
        210,
        title="Four masks over five queries and seven keys",
        told="Each is a grid of five rows, the queries, and seven columns, the keys. A full "
        "cell is True: the query may attend to the key. " + " ".join(map(_told, grids.items())),
    )
    for place, (name, grid) in enumerate(grids.items()):
        x = 24 + 172 * place
        drawing.words(x, 30, name, size=13, bold=True)
        drawing.cells(x, 52, grid.tolist(), side=_SIDE)
        drawing.words(x, 172, "T_{enc} = 7 across", size=13, color="quiet")
        drawing.words(x, 192, "T_{dec} = 5 down", size=13, color="quiet")
    return drawing.svg()


def _told(named: tuple[str, "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]) -> str:
    name, grid = named
    counts = ", ".join(str(int(row.sum())) for row in grid)
    return f"{name}: the rows have {counts} full cells."
