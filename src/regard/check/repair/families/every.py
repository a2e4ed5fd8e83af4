"""Imports every family, which registers it."""

from regard.check.repair.families import (  # noqa: F401
    arithmetic,
    axes,
    calls,
    causal,
    loops,
    masking,
    masks,
    names,
    numbers,
    numerics,
    scale,
    shapes,
    sizes,
    slices,
    subscripts,
    training,
    unused,
)
