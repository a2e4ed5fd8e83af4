"""The largest flow from one place of the last layer down to one place of the input.

Nodes are places of each layer; an edge leads from place o of a layer to place i of the one
below with the attention of o on i as its capacity [1]_.

References
----------
.. [1] Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020, section 3.
   arXiv:2005.00928
"""

from collections import deque
from itertools import pairwise

import numpy as np

from regard.audit.protocol import Numbers

__all__ = ["max_flow"]

_SMALL = 1e-12


def max_flow(layers: Numbers, start: int, end: int) -> float:
    """Return the largest flow from `start` of the last layer to `end` of the input.

    Parameters
    ----------
    layers : (layers, T, T)
        Rows attend columns; the first layer stands next to the input.
    start, end : int

    Notes
    -----
    Dinic's algorithm: shortest paths all at once, until there is none.
    """
    depth, T, _ = layers.shape
    # Down along an edge as far as it has room, up again as far as it is used.
    down = [layers[depth - 1 - level].astype(np.float64).copy() for level in range(depth)]
    up = [np.zeros((T, T)) for _ in range(depth)]
    total = 0.0
    while True:
        distance = _distances(down, up, start)
        if distance[depth, end] < 0:
            return total
        while (pushed := _push(down, up, distance, (0, start), (depth, end))) > _SMALL:
            total += pushed


def _distances(down: list[Numbers], up: list[Numbers], start: int) -> Numbers:
    depth, T = len(down), len(down[0])
    distance = np.full((depth + 1, T), -1)
    distance[0, start] = 0
    waiting = deque([(0, start)])
    while waiting:
        level, place = waiting.popleft()
        for other_level, room in _rooms(down, up, level, place):
            for other in np.flatnonzero((room > _SMALL) & (distance[other_level] < 0)):
                distance[other_level, other] = distance[level, place] + 1
                waiting.append((other_level, int(other)))
    return distance


def _push(
    down: list[Numbers],
    up: list[Numbers],
    distance: Numbers,
    start: tuple[int, int],
    end: tuple[int, int],
) -> float:
    """Send as much as one shortest path carries; closes what leads nowhere."""
    path = [start]
    while path and path[-1] != end:
        level, place = path[-1]
        for other_level, room in _rooms(down, up, level, place):
            nearer = distance[other_level] == distance[level, place] + 1
            found = np.flatnonzero((room > _SMALL) & nearer)
            if found.size:
                path.append((other_level, int(found[0])))
                break
        else:
            distance[level, place] = -1
            path.pop()
    if not path:
        return 0.0
    steps = list(pairwise(path))
    least = min(
        float(down[a[0]][a[1], b[1]] if b[0] > a[0] else up[b[0]][b[1], a[1]]) for a, b in steps
    )
    for (level, place), (other_level, other) in steps:
        if other_level > level:
            down[level][place, other] -= least
            up[level][place, other] += least
        else:
            up[other_level][other, place] -= least
            down[other_level][other, place] += least
    return least


def _rooms(
    down: list[Numbers], up: list[Numbers], level: int, place: int
) -> list[tuple[int, Numbers]]:
    found = []
    if level < len(down):
        found.append((level + 1, down[level][place]))
    if level > 0:
        found.append((level - 1, up[level - 1][:, place]))
    return found
