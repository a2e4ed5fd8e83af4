r"""Every query meets every key without a hyperbolic tangent for each pair.

An additive score needs tanh(q + k) for all pairs. With r = 1 / (1 + e^{2q} e^{2k}) that is
1 - 2r, and its derivative is 4 r (1 - r): one exponential for each query and key feature, then
one multiply-add and one reciprocal for each pair. Both are far cheaper than the tangent, and r
is recomputed in a backward pass instead of being kept.

Where q and k carry large opposite offsets, the product would be 0 times infinity. So keys are
centred for each feature, which keeps their exponentials finite and above 0, and queries are
shifted by as much. A query's exponential may then overflow to infinity or vanish:
r becomes 0 or 1, which is where the tangent is saturated. Keys spread too widely for that go
through a sigmoid, which is slower and has no such limit.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

__all__ = ["PreparedKeys", "prepare_keys", "prepare_queries", "reciprocals"]

# Largest spread of keys around their centre for which exp(2 spread) and its inverse are normal
# numbers, with room to spare.
_WIDEST = {torch.float32: 40.0, torch.float64: 300.0}


@dataclass(frozen=True, eq=False)
class PreparedKeys:
    """Projected keys, made ready once a sequence for :func:`reciprocals`."""

    factor: Tensor
    """(*batch, T_enc, d_attn): exp(2 (key - centre)); or -2 key where not `factored`."""

    centre: Tensor
    """(*batch, 1, d_attn): the middle of each feature's range; 0 where not `factored`."""

    factored: bool
    """Whether the keys lie close enough together for exponentials."""

    def select(self, indices: Tensor) -> "PreparedKeys":
        """Return the keys of these examples, in this order."""
        return replace(self, factor=self.factor[indices], centre=self.centre[indices])


def prepare_keys(key: Tensor) -> PreparedKeys:
    """Make projected keys ready, in float32 or float64; no gradient flows through the result.

    Parameters
    ----------
    key : (*batch, T_enc, d_attn)

    Returns
    -------
    keys : PreparedKeys
    """
    key = key.detach()
    if key.numel():
        low, high = torch.aminmax(key, dim=-2, keepdim=True)
        centre = (low + high) / 2
        spread = float((high - low).max()) / 2
        # False for NaN too: what a user's NaN does is then plain arithmetic's business.
        if spread < _WIDEST[key.dtype]:
            return PreparedKeys((key - centre).mul_(2).exp_(), centre, factored=True)
    zero = key.new_zeros(*key.shape[:-2], 1, key.shape[-1])
    return PreparedKeys(-2 * key, zero, factored=False)


def prepare_queries(query: Tensor, keys: PreparedKeys) -> Tensor:
    """Return the queries' side of the product; a new array.

    Parameters
    ----------
    query : (*batch, T_dec, d_attn)
        Projected queries.
    """
    if not keys.factored:
        return -2 * query
    return (query + keys.centre).mul_(2).exp_()


def reciprocals(query: Tensor, key: Tensor, *, factored: bool, out: Tensor) -> Tensor:
    """Write r = (1 - tanh(q + k)) / 2 for pairs of prepared queries and keys to `out`.

    The two broadcast against each other to the shape of `out`.
    """
    if factored:
        # 1 + q k in one pass; an infinite product ends as r = 0, which is right.
        torch.addcmul(_one(key.dtype, key.device), query, key, out=out)
        return out.reciprocal_()
    torch.add(query, key, out=out)
    return out.sigmoid_()


def _one(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones((), dtype=dtype, device=device)
