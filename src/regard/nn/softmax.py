"""The masked softmax of the modules, checked: shapes are equal and the mask is boolean."""

from torch import Tensor

from regard.kernels.softmax import masked_softmax as _masked_softmax
from regard.nn.shapes import fit

__all__ = ["masked_softmax"]


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    r"""Turn each row of scores into weights over the keys that may be attended.

    .. math:: a_i = \exp(e_i) / \sum_j \exp(e_j) \quad\text{over permitted } i, j

    Parameters
    ----------
    scores : (*rows, T_enc)
        -inf forbids a key as the mask does; scores of +inf share the weight equally, the limit
        of large scores; NaN where the mask is True stays NaN. Anything where it is False.
    mask : (*rows, T_enc), bool, optional
        True = may attend.

    Returns
    -------
    weights : (*rows, T_enc)
        Between 0 and 1. Exactly 0 where the mask is False, with a gradient of exactly 0. A row
        sums to 1 within rounding, or is all zero where nothing is permitted. float16 and
        bfloat16 are normalised in float32 and returned in their own type.

    Raises
    ------
    ShapeError
        Scores and mask differ in shape; nothing is broadcast.
    MaskError
        The mask is not boolean.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([[0.0, float("nan"), 0.0], [1.0, 2.0, 3.0]])
    >>> masked_softmax(scores, torch.tensor([[True, False, True], [False, False, False]]))
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 0.0000, 0.0000]])
    """
    fit(
        "masked_softmax",
        {},
        scores=(scores, "float *rows T_enc"),
        mask=(mask, "bool *rows T_enc | None"),
    )
    return _masked_softmax(scores, mask)
