r"""The control: a task whose deciding token is known, a model that shows it, one that hides it.

Every sequence is of filler words with one planted word in it, and the planted word alone
decides the class. The model weighs states that know the sequence's mean, so that the answer can
be read from any word:

.. math::
    h_t = \tanh(A x_t + B \bar x + a), \quad
    \alpha = \mathrm{softmax}(v^\top \tanh(W h_t + w)), \quad
    p = \sigma(u^\top \sum_t \alpha_t h_t + c)

Trained as usual, it attends to the planted word. Trained with the penalty of [1]_,
:math:`-\lambda \log(1 - \sum_{t \in I} \alpha_t)`, it is as accurate and attends anywhere else.
An audit that cannot tell the two apart on a machine is not to be believed there.

NumPy only, gradients by hand: the control runs wherever the audit does, within seconds.

References
----------
.. [1] Pruthi, Gupta, Dhingra, Neubig and Lipton, "Learning to Deceive with Attention-Based
   Explanations", ACL 2020, equation 1. arXiv:1909.07913
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.audit.inputs import Input
from regard.audit.protocol import Numbers, ReadOut, Trained

__all__ = ["PLANTED", "PlantedCase", "planted_inputs", "train_planted"]

_FILLERS = tuple(f"w{i}" for i in range(29))
PLANTED = (tuple(f"no{i}" for i in range(3)), tuple(f"yes{i}" for i in range(3)))
"""The words that decide for class 0 and for class 1."""
_MASK = "[mask]"
_IDS = {w: i for i, w in enumerate(("", _MASK, *_FILLERS, *PLANTED[0], *PLANTED[1]))}
_DECIDING = frozenset(_IDS[word] for words in PLANTED for word in words)
_SHORTEST, _LONGEST = 7, 13
_D, _D_ATTN = 17, 11
_TRAINING = 2048
_MASKED = 0.05  # share of fillers that training shows masked, so that the mask says nothing

Ids = NDArray[np.int64]
Params = dict[str, Numbers]


def planted_inputs(n: int, *, seed: int = 0) -> list[Input]:
    """Return sequences of the task; ``gold`` is the planted word's place."""
    random = np.random.default_rng([seed, 7])
    found = []
    for _ in range(n):
        length = int(random.integers(_SHORTEST, _LONGEST + 1))
        tokens = [str(word) for word in random.choice(_FILLERS, size=length)]
        label, place = int(random.integers(2)), int(random.integers(length))
        tokens[place] = PLANTED[label][int(random.integers(3))]
        found.append(Input(tuple(tokens), gold=frozenset({place}), label=str(label)))
    return found


class PlantedCase:
    """A trained model of the task, with everything that a case can offer.

    Parameters
    ----------
    params : dict of arrays
        As :func:`train_planted` finds them.
    name : str
    attention : {"learned", "uniform"}
    """

    mask_token = _MASK
    reads_before = False
    deciding = frozenset(word for words in PLANTED for word in words)

    def __init__(self, params: Params, *, name: str, attention: str = "learned") -> None:
        self.params = params
        self.name = name
        self.attention = attention

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, 2)."""
        return _two(self._run(batch)["p"])

    def weights(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the weights (T_enc,) of each input."""
        return self._rows(batch, self._run(batch)["alpha"])

    def predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, 2) with other weights."""
        given = np.zeros(_ids(batch).shape)
        for row, one in enumerate(weights):
            given[row, : len(one)] = one
        return _two(self._run(batch, given)["p"])

    def read_out(self, batch: Sequence[Input]) -> list[ReadOut]:
        """Return each input's linear read-out."""
        states = self._run(batch)["h"]
        W, b = self.params["u"][None], self.params["c"]
        return [ReadOut(h, W, b) for h in self._rows(batch, states)]

    def token_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return abs(input x gradient) of the predicted class (T_enc,), all weights held."""
        run = self._run(batch)
        # Of both classes the derivative has the same size.
        slope = (run["p"] * (1 - run["p"]))[:, None, None]
        through = slope * run["alpha"][..., None] * (1 - run["h"] ** 2) * self.params["u"]
        real = run["real"][..., None]
        to_mean = (through * real).sum(1, keepdims=True) @ self.params["B"].T
        to_x = through @ self.params["A"].T + to_mean / run["real"].sum(1)[:, None, None]
        return self._rows(batch, np.abs((to_x * run["x"]).sum(-1)))

    def weight_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the predicted class's gradient in the weights (T_enc,)."""
        run = self._run(batch)
        sign = np.where(run["p"] >= 0.5, 1.0, -1.0) * run["p"] * (1 - run["p"])
        return self._rows(batch, sign[:, None] * (run["h"] @ self.params["u"]))

    def train(
        self,
        *,
        attention: str = "learned",
        frozen: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
        context: bool = True,
        penalty: float = 0.0,
        seed: int = 0,
    ) -> Trained:
        """Train anew, as :class:`~regard.audit.protocol.Trainable` says."""
        return train_planted(
            penalty=penalty, seed=seed, attention=attention, frozen=frozen, context=context
        )

    def _run(self, batch: Sequence[Input], given: Numbers | None = None) -> dict[str, Numbers]:
        ids = _ids(batch)
        if given is None and self.attention == "uniform":
            given = _uniform(ids)
        return _forward(self.params, ids, given)

    @staticmethod
    def _rows(batch: Sequence[Input], padded: Numbers) -> list[Numbers]:
        return [row[: len(one.tokens)] for one, row in zip(batch, padded, strict=True)]


def train_planted(
    *,
    penalty: float = 0.0,
    seed: int = 0,
    steps: int = 200,
    attention: str = "learned",
    frozen: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
    context: bool = True,
) -> Trained:
    """Train the control.

    Parameters
    ----------
    penalty : float
        Lambda; 0 trains an honest model, 1 one that hides the planted word.
    seed : int
    steps : int
        Of Adam, 128 sequences each.
    attention, frozen, context
        As :class:`~regard.audit.protocol.Trainable` has them.

    Returns
    -------
    trained : Trained
        The case, and how well it answers.
    """
    random = np.random.default_rng([seed, 11])
    inputs = planted_inputs(_TRAINING, seed=1_000_003 + seed)
    ids = _ids(inputs)
    fillers = (ids > 1) & ~np.isin(ids, list(_DECIDING))
    ids = np.where(fillers & (random.random(ids.shape) < _MASKED), _IDS[_MASK], ids)
    labels = np.array([float(one.label or 0) for one in inputs])
    given = _given(inputs, ids, attention, frozen)
    params = _start(random, context)
    first = {name: np.zeros_like(value) for name, value in params.items()}
    second = {name: np.zeros_like(value) for name, value in params.items()}
    for step in range(1, steps + 1):
        rows = random.choice(len(ids), size=128, replace=False)
        weights = None if given is None else given[rows]
        gradients = _backward(params, ids[rows], labels[rows], penalty, weights)
        if not context:
            gradients["B"][:] = 0.0
        rate = 0.02 * (1 - step / (steps + 1))
        for name, gradient in gradients.items():
            first[name] = 0.9 * first[name] + 0.1 * gradient
            second[name] = 0.99 * second[name] + 0.01 * gradient**2
            size = np.sqrt(second[name] / (1 - 0.99**step)) + 1e-8
            params[name] -= rate * first[name] / (1 - 0.9**step) / size
    name = "planted word, " + ("honest" if not penalty else f"deceived (lambda {penalty:g})")
    case = PlantedCase(params, name=name, attention=attention)
    held = planted_inputs(512, seed=2_000_003 + seed)
    right = case.predict(held).argmax(-1) == np.array([int(one.label or 0) for one in held])
    return Trained(case, float(right.mean()))


def _given(
    inputs: Sequence[Input],
    ids: Ids,
    attention: str,
    frozen: Callable[[Sequence[Input]], Sequence[Numbers]] | None,
) -> Numbers | None:
    if attention == "uniform":
        return _uniform(ids)
    if frozen is None:
        return None
    given = np.zeros(ids.shape)
    for row, one in enumerate(frozen(inputs)):
        given[row, : len(one)] = one
    return given


def _start(random: np.random.Generator, context: bool) -> Params:
    def normal(*shape: int, scale: float) -> Numbers:
        return random.normal(0.0, scale, shape)

    embeddings = normal(len(_IDS), _D, scale=1.0)
    embeddings[:2] = 0.0
    return {
        "E": embeddings,
        "A": normal(_D, _D, scale=_D**-0.5),
        "B": normal(_D, _D, scale=_D**-0.5) * context,
        "a": np.zeros(_D),
        "W": normal(_D, _D_ATTN, scale=_D**-0.5),
        "w": np.zeros(_D_ATTN),
        "v": normal(_D_ATTN, scale=_D_ATTN**-0.5),
        "u": normal(_D, scale=_D**-0.5),
        "c": np.zeros(1),
    }


def _forward(params: Params, ids: Ids, given: Numbers | None = None) -> dict[str, Numbers]:
    real = (ids > 0).astype(np.float64)
    x = params["E"][ids]
    mean = (x * real[..., None]).sum(1, keepdims=True) / real.sum(1)[:, None, None]
    h = np.tanh(x @ params["A"] + mean @ params["B"] + params["a"])
    z = np.tanh(h @ params["W"] + params["w"])
    if given is None:
        scores = np.where(real > 0, z @ params["v"], -np.inf)
        alpha = np.exp(scores - scores.max(1, keepdims=True))
        alpha /= alpha.sum(1, keepdims=True)
    else:
        alpha = given
    context = (alpha[..., None] * h).sum(1)
    p = 1 / (1 + np.exp(-np.clip(context @ params["u"] + params["c"], -30, 30)))
    return {
        "real": real,
        "x": x,
        "mean": mean,
        "h": h,
        "z": z,
        "alpha": alpha,
        "context": context,
        "p": p,
    }


def _backward(
    params: Params, ids: Ids, labels: Numbers, penalty: float, given: Numbers | None
) -> Params:
    run = _forward(params, ids, given)
    n = len(ids)
    to_logit = (run["p"] - labels) / n
    to_context = to_logit[:, None] * params["u"]
    to_h = run["alpha"][..., None] * to_context[:, None]
    gradients = {"u": run["context"].T @ to_logit, "c": to_logit.sum(keepdims=True)}
    if given is None:
        to_alpha = (run["h"] * to_context[:, None]).sum(-1)
        if penalty:
            deciding = np.isin(ids, list(_DECIDING)).astype(np.float64)
            mass = (run["alpha"] * deciding).sum(1, keepdims=True)
            to_alpha += penalty * deciding / np.maximum(1 - mass, 1e-6) / n
        inner = (to_alpha * run["alpha"]).sum(1, keepdims=True)
        to_score = run["alpha"] * (to_alpha - inner)
        to_z = to_score[..., None] * params["v"] * (1 - run["z"] ** 2)
        gradients["v"] = np.einsum("nt,ntk->k", to_score, run["z"])
        gradients["W"] = np.einsum("ntd,ntk->dk", run["h"], to_z)
        gradients["w"] = to_z.sum((0, 1))
        to_h = to_h + to_z @ params["W"].T
    else:
        gradients |= {name: np.zeros_like(params[name]) for name in ("v", "W", "w")}
    to_sum = to_h * (1 - run["h"] ** 2) * run["real"][..., None]
    whole = to_sum.sum(1, keepdims=True)
    gradients["A"] = np.einsum("ntd,nte->de", run["x"], to_sum)
    gradients["B"] = np.einsum("nd,ne->de", run["mean"][:, 0], whole[:, 0])
    gradients["a"] = to_sum.sum((0, 1))
    counts = run["real"].sum(1)[:, None, None]
    to_x = to_sum @ params["A"].T + (whole @ params["B"].T) * run["real"][..., None] / counts
    to_E = np.zeros_like(params["E"])
    np.add.at(to_E, ids, to_x)
    to_E[:2] = 0.0  # padding and the mask stay zero: they say nothing
    gradients["E"] = to_E
    return gradients


def _uniform(ids: Ids) -> Numbers:
    real = (ids > 0).astype(np.float64)
    shares: Numbers = real / real.sum(1, keepdims=True)
    return shares


def _ids(batch: Sequence[Input]) -> Ids:
    longest = max(len(one.tokens) for one in batch)
    ids = np.zeros((len(batch), longest), dtype=np.int64)
    for row, one in enumerate(batch):
        ids[row, : len(one.tokens)] = [_IDS.get(token, 1) for token in one.tokens]
    return ids


def _two(p: Numbers) -> Numbers:
    return np.stack([1 - p, p], axis=-1)
