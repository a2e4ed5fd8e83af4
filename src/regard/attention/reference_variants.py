"""The oracle of the papers' other attentions: plain Python lists, one equation a line.

As :mod:`regard.attention.reference`: free of every dependency, slow on purpose, one example at
a time, sums exactly rounded. A row of scores is a list ``(T_enc,)``; masks are lists of
booleans, True where a query may attend.

Local attention (``predicted_position``, ``gaussian``) is that of Luong et al. 2015, section
3.2; coverage of See et al. 2017; location of Chorowski et al. 2015; monotonic attention of
Raffel et al. 2017. Numbers of equations are theirs. ``s`` is one decoder state (d_s,),
``length`` the number of keys, ``W_p`` (d_attn, d_s) and ``v_p`` (d_attn,) predict a position;
all else is named as in the array functions of the same names.
"""

import math

__all__ = [
    "coverage_loss",
    "covered",
    "entmax15",
    "expected_alignment",
    "gaussian",
    "hard_alignment",
    "location",
    "location_features",
    "monotonic_energy",
    "predicted_position",
    "sparsemax",
]

Vector = list[float]
Matrix = list[list[float]]


def _inner(a: Vector, b: Vector) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _apply(matrix: Matrix, vector: Vector) -> Vector:
    return [_inner(row, vector) for row in matrix]


def _perceptron(v: Vector, *parts: Vector) -> float:
    return _inner(v, [math.tanh(math.fsum(each)) for each in zip(*parts, strict=True)])


# Normalisers: scores (T_enc,) to weights (T_enc,).


def _kept(scores: Vector, mask: list[bool] | None) -> list[int]:
    may = [True] * len(scores) if mask is None else mask
    return [i for i, e in enumerate(scores) if may[i] and e != -math.inf]


def _below_peak(scores: Vector, kept: list[int]) -> Vector:
    """Subtract the largest kept score, which leaves weights as they are; inf - inf is 0."""
    peak = max(scores[i] for i in kept)
    return [0.0 if e == peak else e - peak for e in scores]


def sparsemax(scores: Vector, mask: list[bool] | None = None) -> Vector:
    """Return ``max(e_i - tau, 0)``, tau by algorithm 1 of Martins and Astudillo 2016."""
    kept = _kept(scores, mask)
    weights = [0.0] * len(scores)
    if not kept:
        return weights
    scores = _below_peak(scores, kept)
    ordered = sorted((scores[i] for i in kept), reverse=True)
    k = max(k for k in range(1, len(kept) + 1) if 1 + k * ordered[k - 1] > sum(ordered[:k]))
    tau = (math.fsum(ordered[:k]) - 1) / k
    for i in kept:
        weights[i] = max(scores[i] - tau, 0.0)
    return weights


def entmax15(scores: Vector, mask: list[bool] | None = None) -> Vector:
    """Return ``max(e_i / 2 - tau, 0)^2`` (Peters et al. 2019), tau by bisection.

    Halving an interval shares nothing with the sorting of the fast path.
    """
    kept = _kept(scores, mask)
    weights = [0.0] * len(scores)
    if not kept:
        return weights
    scores = _below_peak(scores, kept)
    low, high = -1.0, 0.0  # at low the largest alone has weight 1, at high none has any
    for _ in range(100):
        tau = (low + high) / 2
        total = math.fsum(max(scores[i] / 2 - tau, 0.0) ** 2 for i in kept)
        low, high = (tau, high) if total > 1 else (low, tau)
    for i in kept:
        weights[i] = max(scores[i] / 2 - low, 0.0) ** 2
    return weights


# Local attention (Luong et al. 2015, section 3.2). Keys are counted from 0.


def predicted_position(s: Vector, length: int, *, W_p: Matrix, v_p: Vector) -> float:
    """Return ``p_t = S sigmoid(v_p . tanh(W_p s_t))`` (eq. 9)."""
    return length / (1 + math.exp(-_perceptron(v_p, _apply(W_p, s))))


def gaussian(position: float, T_enc: int, *, D: float) -> Vector:
    """Return ``exp(-(i - p_t)^2 / (2 sigma^2))`` with sigma = D / 2 (eq. 10)."""
    return [math.exp(-((i - position) ** 2) / (2 * (D / 2) ** 2)) for i in range(T_enc)]


# Coverage (See et al. 2017, section 2.3).


def covered(
    s: Vector,
    key: Matrix,
    coverage: Vector,
    *,
    W_h: Matrix,
    W_s: Matrix,
    w_c: Vector,
    b: Vector,
    v: Vector,
) -> Vector:
    """Return ``v . tanh(W_h h_i + W_s s_t + w_c c_i + b)`` for every key (eq. 11)."""
    return [
        _perceptron(v, _apply(W_h, h), _apply(W_s, s), [w * c for w in w_c], b)
        for h, c in zip(key, coverage, strict=True)
    ]


def coverage_loss(weights: Matrix) -> Vector:
    """Return ``sum_i min(a_i, c_i)`` of every step, c the sum of the rows before (12)."""
    return [
        math.fsum(
            min(a, math.fsum(row[i] for row in weights[:t])) for i, a in enumerate(weights[t])
        )
        for t in range(len(weights))
    ]


# Location (Chorowski et al. 2015, section 2.2).


def location_features(previous: Vector, *, F: Matrix) -> Matrix:
    """Return ``f_j = (F * a)_j`` for every key: a convolution centred on it (eq. 8)."""
    reach = (len(F[0]) - 1) // 2
    seen = range(len(previous))
    return [
        [
            math.fsum(tap * previous[j - n + reach] for n, tap in enumerate(row)
                      if j - n + reach in seen)
            for row in F
        ]
        for j in seen
    ]  # fmt: skip


def location(
    s: Vector,
    key: Matrix,
    previous: Vector,
    *,
    W: Matrix,
    V: Matrix,
    U: Matrix,
    F: Matrix,
    b: Vector,
    w: Vector,
) -> Vector:
    """Return ``w . tanh(W s + V h_j + U f_j + b)`` for every key (eq. 9)."""
    return [
        _perceptron(w, _apply(W, s), _apply(V, h), _apply(U, f), b)
        for h, f in zip(key, location_features(previous, F=F), strict=True)
    ]


# Monotonic attention (Raffel et al. 2017).


def monotonic_energy(
    s: Vector,
    key: Matrix,
    *,
    W: Matrix,
    V: Matrix,
    b: Vector,
    v: Vector,
    g: float,
    r: float,
) -> Vector:
    """Return ``g v / |v| . tanh(W s + V h_j + b) + r`` for every key (eq. 16)."""
    length = math.sqrt(_inner(v, v))
    return [g / length * _perceptron(v, _apply(W, s), _apply(V, h), b) + r for h in key]


def expected_alignment(p: Vector, previous: Vector) -> Vector:
    """Return ``a_j = p_j sum_k previous_k prod_l (1 - p_l)``, k <= l < j (eq. 9)."""
    return [
        p[j]
        * math.fsum(
            previous[k] * math.prod(1 - p[m] for m in range(k, j)) for k in range(j + 1)
        )
        for j in range(len(p))
    ]


def hard_alignment(energies: Vector, start: int | None) -> int | None:
    """Return the first key from `start` whose energy is above 0, None if there is none."""
    if start is None:
        return None
    return next((j for j in range(start, len(energies)) if energies[j] > 0), None)
