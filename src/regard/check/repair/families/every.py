"""Imports every family, which registers it."""

from regard.check.repair.families import (  # noqa: F401
    anew,
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
    pairs,
    scale,
    shapes,
    sizes,
    slices,
    subscripts,
    training,
    unused,
    written_sizes,
)
