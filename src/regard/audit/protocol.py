"""What a model must offer to be audited, and what more it may offer.

:class:`Case` is all that input erasure needs: probabilities, and the weights that would be
shown. Each further protocol opens further tests; what a case does not offer is listed in the
report as not tested.

==========================  =================================================================
a case that also has        lets the audit
==========================  =================================================================
``predict_with``            erase, permute and replace weights; verify that they are the ones
                            that make the output
``read_out``                do so exactly and without running the model again; find every
                            other weighting with the same output
``token_gradient``          compare with input x gradient
``weight_gradient``         remove weights in the order of their gradient
``layers``                  follow attention through layers: rollout and flow
``train``                   train again: uniform, other seeds, frozen weights, deceived
``train_adversary``         train a model that answers alike and attends elsewhere
``heads``                   see whether the weights shown are an average of different ones
``split``                   cut the texts of pairs as the model does: into letters, say
``inputs``                  cut other texts as the model does: into subwords, with [CLS]
``reads_before`` = False    refuse steps of pairs, which it would all answer the same
``mask_token``              erase by masking, besides deleting and resampling
==========================  =================================================================
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from regard.audit.inputs import Input
from regard.errors import InputError, ShapeError, explain

__all__ = [
    "Averaged",
    "Case",
    "Differentiable",
    "FunctionCase",
    "Imitable",
    "Layered",
    "Masked",
    "Numbers",
    "Overridable",
    "ReadOut",
    "ReadsOut",
    "Trainable",
    "Trained",
    "WeightDifferentiable",
    "check_case",
    "numbers",
]

Numbers: TypeAlias = NDArray[np.float64]


@runtime_checkable
class Case(Protocol):
    """A model and the weights that it would show.

    Raises
    ------
    Exception
        Whatever its methods raise stops the audit.
    """

    @property
    def name(self) -> str:
        """What the report calls it: model, and which layer, head or step."""
        ...

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, classes), each row summing to 1.

        Called with tokens left out or replaced, too. In evaluation mode.
        """
        ...

    def weights(self, batch: Sequence[Input]) -> Sequence[Any]:
        """Return for each input its weights (T_enc,): one row, as it would be shown."""
        ...


@runtime_checkable
class Masked(Protocol):
    """A case whose model knows a token that says nothing."""

    @property
    def mask_token(self) -> str | None:
        """The token; None if there is none after all."""
        ...


@runtime_checkable
class Overridable(Protocol):
    """A case that can run with other weights, everything before them unchanged."""

    def predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, classes) with these weights (T_enc,) in the layer."""
        ...


@dataclass(frozen=True)
class ReadOut:
    """How an answer is read from what was weighted: link(W (sum_t a_t v_t) + b).

    Parameters
    ----------
    values : (T_enc, d_v)
        What the weights weigh.
    W : (outputs, d_v)
    b : (outputs,)
        One output is the logit of the last of two classes (sigmoid); more are softmax scores.
    """

    values: Numbers
    W: Numbers
    b: Numbers

    @property
    def scores(self) -> Numbers:
        """Each token's contribution at weight 1: (T_enc, outputs)."""
        product: Numbers = self.values @ self.W.T
        return product


@runtime_checkable
class ReadsOut(Protocol):
    """A case whose answer is a linear read-out of the weighted values."""

    def read_out(self, batch: Sequence[Input]) -> Sequence[ReadOut]:
        """Return the read-out of each input."""
        ...


@runtime_checkable
class Differentiable(Protocol):
    """A case that can say how its answer changes with each token."""

    def token_gradient(self, batch: Sequence[Input]) -> Sequence[Numbers]:
        """Return (T_enc,): abs(input x gradient) of the probability of the predicted class.

        The weights are held fixed: the gradient does not pass through them.
        """
        ...


@runtime_checkable
class WeightDifferentiable(Protocol):
    """A case that can say how its answer changes with each weight."""

    def weight_gradient(self, batch: Sequence[Input]) -> Sequence[Numbers]:
        """Return (T_enc,): gradient of the predicted class's probability in the weights."""
        ...


@runtime_checkable
class Layered(Protocol):
    """A case with self-attention in several layers."""

    def layers(self, batch: Sequence[Input]) -> Sequence[Numbers]:
        """Return (layers, heads, T, T) of each input, rows summing to 1, first layer first."""
        ...

    @property
    def read_from(self) -> int:
        """The position whose last state the answer is read from; -1 for the last one."""
        ...


@dataclass(frozen=True)
class Trained:
    """A model that was trained for the audit.

    Parameters
    ----------
    case : Case
    accuracy : float
        On held-out inputs, 0 to 1.
    f1 : float or None
        Of the last class, where there are two.
    """

    case: Case
    accuracy: float
    f1: float | None = None


@runtime_checkable
class Averaged(Protocol):
    """A case that shows the average of several heads."""

    def heads(self, batch: Sequence[Input]) -> Sequence[Numbers]:
        """Return (heads, T_enc) of each input: the rows of which the average is shown."""
        ...


@runtime_checkable
class Trainable(Protocol):
    """A case that can train its model again."""

    def train(
        self,
        *,
        attention: str = "learned",
        frozen: Callable[[Sequence[Input]], Sequence[Numbers]] | None = None,
        context: bool = True,
        penalty: float = 0.0,
        seed: int = 0,
    ) -> Trained:
        """Train anew.

        Parameters
        ----------
        attention : {"learned", "uniform", "frozen"}
            "frozen": with the weights that `frozen` returns for each batch.
        context : bool
            False: every token is encoded by itself (the frozen-weights diagnostic).
        penalty : float
            Lambda of the deception: the loss gains -lambda log(1 - mass on the tokens that
            matter). 0 for none.
        seed : int
        """
        ...


@runtime_checkable
class Imitable(Protocol):
    """A case that can train a model of its own kind which answers alike, with other weights."""

    def train_adversary(self, *, strength: float, seed: int = 0) -> Trained:
        """Train it on this case's answers and against its weights, on the training inputs.

        Parameters
        ----------
        strength : float
            Lambda of TVD(answers) - lambda KL(its weights || this case's), from 0.
        seed : int
        """
        ...


class FunctionCase:
    """A case made of functions on lists of tokens.

    Each function takes a list of token lists, and is called with any number of inputs of
    different lengths, with tokens left out or replaced too. Arrays of any library that NumPy
    can read will do; PyTorch tensors may hang on a graph or lie on a device.

    Parameters
    ----------
    predict : callable
        Returns probabilities (batch, classes), at least two classes, each row 0 to 1 and
        summing to 1 within 1e-4. The same for the same tokens, whatever else is in the batch.
    weights : callable
        Returns for each input its own weights (T_enc,): one a token and none for padding, 0 to
        1, summing to 1 within 1e-4.
    predict_with : callable, optional
        Takes the token lists and a list of weights (T_enc,), float64, one row an input; returns
        probabilities (batch, classes) with these in place of the model's own and everything
        before them unchanged. With the model's own it returns what `predict` does within 1e-5.
    mask_token : str, optional
        A token that says nothing to the model; without it nothing is erased by masking.
    name : str
        What the report calls it: the model, and which layer, head or step.
    """

    reads_before = False

    def __init__(
        self,
        predict: Callable[[list[list[str]]], Any],
        weights: Callable[[list[list[str]]], Any],
        *,
        predict_with: Callable[[list[list[str]], list[Numbers]], Any] | None = None,
        mask_token: str | None = None,
        name: str = "model",
    ) -> None:
        self.name = name
        self.mask_token = mask_token
        self._predict, self._weights = predict, weights
        if predict_with is not None:
            self.predict_with = lambda batch, rows: numbers(
                predict_with(_lists(batch), list(rows)), "predict_with()"
            )

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, classes)."""
        return numbers(self._predict(_lists(batch)), "predict()")

    def weights(self, batch: Sequence[Input]) -> Any:
        """Return for each input its weights (T_enc,)."""
        return self._weights(_lists(batch))


def numbers(values: Any, name: str) -> Numbers:
    """Return what a case returned as float64; tensors are taken off their graph and device.

    Parameters
    ----------
    values : array, or list of numbers, arrays or tensors
    name : str
        Who returned it, for the error.

    Raises
    ------
    ShapeError
        It holds no numbers, or rows of different lengths.
    """
    try:
        return np.asarray(_off_graph(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            explain(
                f"{name}: these are no numbers",
                expected="an array, or lists of numbers of one length",
                got=f"{type(values).__name__}: {str(error)[:120]}",
            )
        ) from error


def _off_graph(values: Any) -> Any:
    if isinstance(values, list | tuple) and any(hasattr(one, "detach") for one in values):
        return [_off_graph(one) for one in values]
    return values.detach().cpu().double().numpy() if hasattr(values, "detach") else values


def check_case(case: object, where: str = "audit()") -> Case:
    """Return the case, or refuse what cannot be one.

    Raises
    ------
    InputError
        It lacks `name`, `predict` or `weights`.
    """
    missing = [part for part in ("name", "predict", "weights") if not hasattr(case, part)]
    if missing:
        raise InputError(
            explain(
                f"{where}: this is no case",
                expected="an object with `name`, `predict` and `weights`",
                got=f"{type(case).__name__} without {', '.join(missing)}",
                help="regard.audit.FunctionCase(predict, weights) makes one of two functions",
            )
        )
    assert isinstance(case, Case)  # its three parts are there
    return case


def _lists(batch: Sequence[Input]) -> list[list[str]]:
    return [list(one.tokens) for one in batch]
