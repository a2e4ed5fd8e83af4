"""Questions about numbers, made anew each time: regard computes the answer."""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

import regard as rg
from regard.alignment.link_files import link_lines
from regard.alignment.links import Gold
from regard.alignment.score import score_alignments
from regard.learn.quiz.question import Made

__all__ = ["MAKERS"]


def _vector(draw: random.Random, size: int, low: int = -2, high: int = 3) -> list[float]:
    return [float(draw.randint(low, high)) for _ in range(size)]


def _row(numbers: Sequence[float], digits: int = 0) -> str:
    return "[" + ", ".join(f"{number:.{digits}f}" for number in numbers) + "]"


def dot_score(draw: random.Random) -> Made:
    """Ask for a dot product."""
    s, h = _vector(draw, 3), _vector(draw, 3)
    right = float(np.asarray(rg.scores.dot(np.array([s]), np.array([h])))[0, 0])
    return Made(
        f"What is Luong's dot score of s = {_row(s)} and h = {_row(h)}?",
        f"{right:g}",
        [f"{each:g}" for each in (right + 1, sum(s) + sum(h), -right, right - 2, right + 3)],
        " + ".join(f"({a:g})({b:g})" for a, b in zip(s, h, strict=True)) + f" = {right:g}.",
    )


def two_weights(draw: random.Random) -> Made:
    """Ask for the softmax of two scores whose difference is a logarithm."""
    ratio = draw.choice([2, 3, 4, 9])
    base = draw.choice([-3.0, 0.0, 100.0])
    weights = rg.softmax([base, base + math.log(ratio)])
    shown = [f"{float(weight):.2f}" for weight in weights]
    return Made(
        f"Two keys have scores {base:g} and {base:g} + ln {ratio}. What are their weights?",
        f"{shown[0]} and {shown[1]}",
        [f"{shown[1]} and {shown[0]}", "0.50 and 0.50", "0.00 and 1.00"],
        f"Only the difference counts: the second weight is e^(ln {ratio}) = {ratio} times the "
        "first, and they sum to 1.",
    )


def shifted(draw: random.Random) -> Made:
    """Ask what a constant does to weights."""
    scores = [float(draw.randint(-2, 2)) for _ in range(4)]
    by = draw.choice([-7.0, 5.0, 1000.0])
    before, after = rg.softmax(scores), rg.softmax([score + by for score in scores])
    same = np.allclose(before, after, atol=1e-12)
    return Made(
        f"{by:g} is added to every score of a row. What happens to the weights?",
        "nothing" if same else "they change",
        ["the largest comes closer to 1", "all come closer to each other", "they overflow"],
        "e^(x + c) = e^c e^x, and e^c stands above and below the line. That is why the largest "
        "score may be subtracted first, and why nothing overflows.",
    )


def scaled_up(draw: random.Random) -> Made:
    """Ask what a factor does to the largest weight."""
    scores = sorted(draw.sample(range(-3, 4), 3))
    factor = draw.choice([0.5, 2.0, 3.0])
    before = max(float(x) for x in rg.softmax([float(s) for s in scores]))
    after = max(float(x) for x in rg.softmax([factor * s for s in scores]))
    right = "it grows" if after > before else "it shrinks"
    return Made(
        f"The scores {_row([float(s) for s in scores])} are multiplied by {factor:g}. What "
        "happens "
        "to the largest weight?",
        f"{right}: {before:.3f} becomes {after:.3f}",
        [
            f"it stays {before:.3f}",
            f"it is multiplied too: {min(1.0, before * factor):.3f}",
            f"it {'shrinks' if after > before else 'grows'}: {after:.3f} becomes {before:.3f}",
        ],
        "A factor makes differences of scores larger or smaller, and the softmax sharper or "
        "flatter: 1 / factor is its temperature.",
    )


def context_by_hand(draw: random.Random) -> Made:
    """Ask for a context from simple weights."""
    values = [_vector(draw, 2, -4, 4) for _ in range(2)]
    ratio = draw.choice([1, 3])
    context, weights = rg.attend(
        np.array([[1.0]]),
        np.array([[0.0], [math.log(ratio)]]),
        np.array(values),
        score="dot",
    )
    right = [float(x) for x in np.asarray(context)[0]]
    first, second = (float(x) for x in np.asarray(weights)[0])
    return Made(
        f"Two values, {_row(values[0])} and {_row(values[1])}, have the weights {first:.2f} "
        "and "
        f"{second:.2f}. What is the context?",
        _row(right, 2),
        [
            _row([first * b + second * a for a, b in zip(*values, strict=True)], 2),
            _row([a + b for a, b in zip(*values, strict=True)], 2),
            _row([first * values[0][0], second * values[1][1]], 2),
            _row([right[0] + 1, right[1]], 2),
        ],
        "Each number of the context is the same weighted mean of that number of the values.",
    )


def who_asks(draw: random.Random) -> Made:
    """Ask which state a decoder queries with."""
    t = draw.randint(2, 9)
    name, right, other = draw.choice(
        [("Bahdanau's", t - 1, t), ("Luong's", t, t - 1)]
    )  # the papers' own indices: section 3.1 of one, 3 of the other
    why = {
        "Bahdanau's": "the context goes into the step that makes s_t, so s_t is not there yet",
        "Luong's": "the step is made first, and s_t asks for the context",
    }[name]
    return Made(
        f"{name} decoder makes step t = {t}. Which state is the query?",
        f"s_{right}",
        [f"s_{other}", f"s_{t + 1}", f"h_{t}"],
        f"In {name} model {why}.",
    )


def masked_row(draw: random.Random) -> Made:
    """Ask for weights under a mask."""
    scores = [0.0, 0.0, 0.0, 0.0]
    kept = draw.choice([0, 1, 2])
    said = ("no key", "the first key alone", "the first two keys")[kept]
    mask = [at < kept for at in range(4)]
    weights = [float(x) for x in np.asarray(rg.softmax(np.array(scores), mask=np.array(mask)))]
    return Made(
        f"Four equal scores, and a mask that permits {said}. What does regard return as "
        "weights?",
        _row(weights, 2),
        ["[0.25, 0.25, 0.25, 0.25]", "[nan, nan, nan, nan]", "[1.00, 0.00, 0.00, 0.00]"],
        "A key that is not permitted has weight exactly 0 and the rest share 1. Where none is "
        "permitted there is nothing to share: zeros, and a context of zeros, never NaN.",
    )


def padded_share(draw: random.Random) -> Made:
    """Ask what weight padding takes without a mask."""
    length, padding = draw.choice([(3, 1), (3, 3), (2, 6), (5, 5)])
    weights = np.asarray(rg.softmax(np.zeros(length + padding)))
    share = 100 * float(weights[length:].sum())
    return Made(
        f"A sentence of {length} tokens is padded by {padding}, all scores are equal, and the "
        "mask "
        "was forgotten. How much of the weight goes to padding?",
        f"{share:.0f} %",
        [
            f"{each:.0f} %"
            for each in (0, 100 / length, 100 - share, 100 / (length + padding), 90)
        ],
        f"Without a mask padding is a key like any other: {padding} of {length + padding}.",
    )


def variance(draw: random.Random) -> Made:
    """Ask for the size of dot products."""
    d = draw.choice([16, 64, 256])
    # Exactly: two vectors of +-1, every sign as likely; the mean of the squares of their
    # product.
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1)
    of_four = float(np.mean(signs.sum(axis=0) ** 2))
    right = math.sqrt(of_four / 4 * d)
    return Made(
        "The numbers of queries and keys are independent, with mean 0 and variance 1, d = "
        f"{d}. "
        "What is the standard deviation of q . k?",
        f"{right:g}",
        [f"{each:g}" for each in (d, 1, d / 2, 2 * right)],
        "d products of variance 1 are summed, so the variance is d: hence the division by "
        "sqrt(d) "
        "(Vaswani et al. 2017, section 3.2.1).",
    )


def pairs_memory(draw: random.Random) -> Made:
    """Ask for the memory of the array of pairs."""
    batch, T, d = draw.choice([(32, 100, 128), (64, 50, 256), (16, 200, 512)])
    size = np.broadcast_to(np.float32(0), (batch, T, T, d)).size * 4 / 1e6
    return Made(
        f"Additive attention in float32, batch {batch}, T_dec = T_enc = {T}, d_attn = {d}. How "
        "large is the array inside tanh?",
        f"{size:,.0f} MB",
        [f"{each:,.0f} MB" for each in (size / d, size / T, size / 4, size / batch)],
        f"{batch} x {T} x {T} x {d} numbers of 4 bytes. The factored kernel never makes it.",
    )


def factored(draw: random.Random) -> Made:
    """Ask for the factored form of tanh."""
    p, k = draw.choice([(0.5, 0.25), (-1.0, 0.5), (1.0, 1.0)])
    right = 1 - 2 / (1 + math.exp(2 * p) * math.exp(2 * k))
    by_tanh = np.asarray(
        rg.scores.additive(
            np.array([[p]]), np.array([[k]]), W_a=np.eye(1), U_a=np.eye(1), v_a=np.ones(1)
        )
    )[0, 0]
    if not math.isclose(right, float(by_tanh), abs_tol=1e-9):
        raise AssertionError("the identity does not hold")
    return Made(
        f"tanh({p:g} + {k:g}) from a = e^({2 * p:g}) and b = e^({2 * k:g}) alone: how?",
        "1 - 2 / (1 + a b)",
        ["(a + b) / (1 + a b)", "1 - 2 / (1 + a + b)", "(a b - 1) / 2"],
        f"tanh(x) = 1 - 2 / (1 + e^(2x)), and e^(2p + 2k) = a b. Here it is {right:.3f}. One "
        "exponential for each query and each key, none for a pair.",
    )


def self_cost(draw: random.Random) -> Made:
    """Ask how scores grow with length."""
    T, factor = draw.choice([(10, 2), (7, 3), (20, 4)])
    n = [
        np.asarray(rg.scores.dot(np.ones((t, 3)), np.ones((t, 3)))).size
        for t in (T, factor * T)
    ]
    return Made(
        f"A text grows from {T} to {factor * T} tokens. By what does the number of scores of "
        "self-attention grow?",
        f"{n[1] // n[0]} times",
        [f"{each} times" for each in (factor, 2 * factor, factor**3)],
        f"Every token meets every token: {T}^2 = {n[0]:,} scores become {n[1]:,}.",
    )


def head_size(draw: random.Random) -> Made:
    """Ask for the size of a head."""
    heads, size = draw.choice([(4, 16), (8, 64), (12, 64), (6, 32)])
    d = heads * size
    right = np.shape(rg.split_heads(np.ones((1, 1, d)), heads))[-1]
    return Made(
        f"d_model = {d} and {heads} heads. How many numbers does a head have?",
        str(right),
        [str(each) for each in (d, heads, d * heads, d // 2)],
        f"The features are shared out: {d} / {heads}. More heads need no more parameters, but "
        "weights for each, made from fewer features.",
    )


def order_blind(draw: random.Random) -> Made:
    """Ask what self-attention knows of order."""
    size = draw.choice([4, 5, 6])
    rng = np.random.default_rng(draw.randrange(2**32))
    states, order = rng.normal(size=(size, 3)), rng.permutation(size)
    context, _ = rg.attend(states, states)
    mixed, _ = rg.attend(states[order], states[order])
    same = np.allclose(np.asarray(mixed), np.asarray(context)[order])
    return Made(
        f"The {size} tokens of a sentence are shuffled before self-attention without "
        "positions. "
        "What happens to each token's context?",
        "it stays the same" if same else "it changes",
        ["it becomes that of the token before", "it becomes zero", "it is masked"],
        "A weighted mean has no order. Whatever a model knows of word order comes from "
        "positions "
        "that are added, or from recurrence.",
    )


def error_rate(draw: random.Random) -> Made:
    """Ask for the AER of a few links."""
    sure = {(0, 0), (1, 1)}
    possible = {*sure, (2, 1)}
    system = draw.choice(
        [{(0, 0), (1, 1)}, {(0, 0), (2, 1)}, {(0, 0), (1, 2)}, {(0, 0), (1, 1), (2, 2)}]
    )
    found = score_alignments([Gold(frozenset(sure), frozenset(possible))], [frozenset(system)])
    right, counts = found.aer, [len(system & sure), len(system & possible), len(system)]

    def told(links: set[tuple[int, int]]) -> str:
        return link_lines([frozenset(links)])[0]

    return Made(
        f"Sure links {told(sure)}, possible links {told(possible)}; a system gives "
        f"{told(system)}. "
        "What is its alignment error rate?",
        f"{right:.2f}",
        [f"{each:.2f}" for each in (1 - right, 0.0, 0.25, 0.5, 1 / 3, 0.2)],
        f"1 - (|A and S| + |A and P|) / (|A| + |S|) = 1 - ({counts[0]} + {counts[1]}) / "
        f"({counts[2]} + {len(sure)}) (Och and Ney 2003).",
    )


def free_directions(draw: random.Random) -> Made:
    """Ask in how many directions weights may move without a trace."""
    d = draw.choice([2, 3, 4])
    n = d + draw.choice([2, 4, 7])
    values = np.random.default_rng(draw.randrange(2**32)).normal(size=(n, d))
    rank = int(np.linalg.matrix_rank(np.hstack([values, np.ones((n, 1))])))
    right = n - rank
    return Made(
        f"{n} tokens, values of size {d} in general position. In how many directions can the "
        "weights move while they still sum to 1 and the context stays exactly as it is?",
        str(right),
        [str(each) for each in (0, n - d, n - 1, d, n)],
        f"The context fixes {d} numbers and the sum one more: {n} - {d + 1}. Weights that "
        "give the "
        "same answer are not unique, so they cannot by themselves be the reason for it.",
    )


def chance(draw: random.Random) -> Made:
    """Ask for the accuracy of guessing."""
    symbols = draw.choice([4, 8, 16, 20])
    right = float(np.asarray(rg.softmax(np.zeros(symbols)))[0])
    return Made(
        f"A copy task with {symbols} symbols, each as likely. What accuracy has a model that "
        "knows "
        "nothing of the source?",
        f"{100 * right:.2f} %",
        ["0.00 %", "50.00 %", f"{200 * right:.2f} %", f"{100 / (symbols + 1):.2f} %"],
        f"One in {symbols}. A baseline at this level has learnt nothing, however its loss "
        "looks.",
    )


MAKERS: dict[str, tuple[str, str, Callable[[random.Random], Made]]] = {
    "number-chance": ("bottleneck", "check", chance),
    "number-softmax": ("additive", "before", two_weights),
    "number-context": ("additive", "after", context_by_hand),
    "number-dot": ("luong", "check", dot_score),
    "number-variance": ("luong", "after", variance),
    "number-step": ("step-order", "check", who_asks),
    "number-masked": ("masks", "check", masked_row),
    "number-padding": ("masks", "before", padded_share),
    "number-shift": ("query-key-value", "check", shifted),
    "number-temperature": ("query-key-value", "after", scaled_up),
    "number-self-cost": ("self-attention", "check", self_cost),
    "number-order": ("self-attention", "before", order_blind),
    "number-head-size": ("multi-head", "before", head_size),
    "number-memory": ("factored-kernel", "check", pairs_memory),
    "number-factored": ("factored-kernel", "after", factored),
    "number-aer": ("reading-alignments", "check", error_rate),
    "number-free": ("explanation-trap", "check", free_directions),
}
"""Name of a question: its lesson, when it is asked, what makes it."""
