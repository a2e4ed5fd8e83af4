"""Arrays in every regime where an additive kernel could fail, and what is right in float64."""

import numpy as np

BATCH, T_DEC, T_ENC, D_ATTN = 2, 7, 19, 53
TINY = 2e-45  # a result that is itself subnormal is rounded by this much


def in_float64(query, key, v, grad):
    """Scores and gradients in float64, and what saturates nowhere as a scale for gradients."""
    query, key, v, grad = (np.asarray(each, np.float64) for each in (query, key, v, grad))
    pairs = query[..., :, None, :] + key[..., None, :, :]
    tangent = np.tanh(pairs)
    # 1 - tanh^2 would cancel where the tangent is near 1.
    slope = 1 / np.cosh(np.clip(pairs, -300, 300)) ** 2 * v * grad[..., None]
    d_v = (grad[..., None] * tangent).reshape(-1, v.size).sum(0)
    return tangent @ v, (slope.sum(-2), slope.sum(-3), d_v)


def normal(rng, *shape, scale=1.0):
    return (scale * rng.standard_normal(shape)).astype(np.float32)


def arrays_of(name, rng):
    query, key = normal(rng, BATCH, T_DEC, D_ATTN), normal(rng, BATCH, T_ENC, D_ATTN)
    v, grad = normal(rng, D_ATTN), normal(rng, BATCH, T_DEC, T_ENC)
    far = np.float32(20) * normal(rng, D_ATTN)
    f = np.float32
    if name.startswith("normal "):
        query, key = query * f(name.split()[1]), key * f(name.split()[1])
    elif name.startswith("opposite offsets "):
        query, key = query - f(name.split()[2]), key + f(name.split()[2])
    elif name == "an offset a feature":
        query, key = query - far, key + far
    elif name == "one hot key":
        key[:, 3] += 100
    elif name == "one hot query":
        query[:, 3] += 100
    elif name == "zeros":
        query, key = 0 * query, 0 * key
    elif name == "differences of 1e-4":
        query, key = query[:, :1] + f(1e-4) * query, key[:, :1] + f(1e-4) * key
    elif name == "denormal sums":
        query, key = query * f(1e-40), key * f(1e-40)
    elif name == "denormal weights":
        v = v * f(1e-40)
    elif name == "huge weights":
        v = v * f(1e36)
    elif name == "weights of every size":
        v = v * (10 ** rng.uniform(-30, 0, D_ATTN)).astype(f)
    elif name == "half the weights zero":
        v[::2] = 0
    elif name == "at the edge of factoring":
        key[:, 0, :], key[:, 1, :], query[:, 0, :], query[:, 1, :] = 15.4, -15.4, 15.4, -15.4
    else:
        assert name == "narrow beside wide", name
        query[..., ::3], key[..., ::3] = 30 * query[..., ::3], f(0.01) * key[..., ::3]
    return query, key, v, grad


REGIMES = [
    *(f"normal {scale}" for scale in ("1e-30", "1e-4", "0.03", "0.1", "1", "3", "10", "1e30")),
    *(f"opposite offsets {offset}" for offset in ("60", "100", "-100")),
    *("an offset a feature", "one hot key", "one hot query", "zeros", "differences of 1e-4"),
    *("denormal sums", "denormal weights", "huge weights", "weights of every size"),
    *("half the weights zero", "at the edge of factoring", "narrow beside wide"),
]
