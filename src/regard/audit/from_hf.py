"""A Hugging Face text classifier as a case: one head, its heads' average, or rollout.

The model runs an attention of this module, registered with both of Transformers' interfaces:
one that is registered without its mask function is called without a mask, and padding is
attended without a word.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.audit.inputs import Input
from regard.audit.protocol import Numbers
from regard.audit.rollout import rollout
from regard.errors import BackendError, ConventionError, explain

__all__ = ["TransformersCase", "from_transformers", "register"]

_NAME = "regard_audit"


@dataclass(eq=False)
class _Watch:
    """What one forward pass is asked: catch all weights, replace one layer's."""

    weights: list[Tensor] = field(default_factory=list)
    layer: int | None = None
    head: int | None = None
    row: int = 0
    given: Sequence[Numbers] | None = None


_watch: ContextVar[_Watch | None] = ContextVar("watch", default=None)


def register() -> str:
    """Make the audit's attention and its masks known to Transformers; return its name.

    Raises
    ------
    BackendError
        Transformers is missing or too old.
    """
    try:
        transformers: Any = import_module("transformers")
        masks: Any = import_module("transformers.masking_utils")
        transformers.AttentionInterface.register(_NAME, _attend)
        transformers.AttentionMaskInterface.register(_NAME, masks.eager_mask)
    except (ModuleNotFoundError, AttributeError) as error:
        raise BackendError(
            explain(
                "from_transformers() needs Hugging Face Transformers",
                expected="transformers 4.53 or later",
                got=str(error),
                help="python -m pip install 'regard[hf]'",
            )
        ) from error
    return _NAME


class TransformersCase:
    """A sequence classifier of Transformers.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        With logits (batch, classes). Put into evaluation mode, and onto this attention.
    tokenizer : transformers.PreTrainedTokenizer
        Only its ``convert_tokens_to_ids`` and special tokens are used; :meth:`inputs` needs it
        whole.
    layer : int
        From 0; negative counts from the end.
    head : int, optional
        For ``reduce="head"``.
    reduce : {"head", "mean", "rollout"}
        What is shown. An average of heads is not what the model runs with, and G0 stops it
        unless all heads agree; rollout is no weighting of any layer, and is taken on trust.
    row : int
        The query whose weights are shown: where the answer is read from. 0 is [CLS]; -1 the
        last token, as decoders have it.
    name : str, optional

    Raises
    ------
    ConventionError
        ``reduce`` and ``head`` contradict each other, or there is no such layer.
    BackendError
        Transformers is missing or too old.
    """

    reads_before = False

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any,
        *,
        layer: int = -1,
        head: int | None = None,
        reduce: str = "head",
        row: int = 0,
        name: str | None = None,
    ) -> None:
        if reduce not in ("head", "mean", "rollout") or (head is not None) != (
            reduce == "head"
        ):
            raise ConventionError(
                explain(
                    "from_transformers(): which weights are shown?",
                    expected='reduce="head" with head=a number, reduce="mean" or "rollout"',
                    got=f"reduce={reduce!r}, head={head!r}",
                )
            )
        loaded: Any = model
        loaded.set_attn_implementation(register())
        self.model = loaded.eval()
        self.tokenizer = tokenizer
        count = int(loaded.config.num_hidden_layers)
        if not -count <= layer < count:
            raise ConventionError(
                explain(
                    "from_transformers(): there is no such layer",
                    expected=f"{-count} to {count - 1}",
                    got=f"layer={layer}",
                )
            )
        heads = int(loaded.config.num_attention_heads)
        if head is not None and not -heads <= head < heads:
            raise ConventionError(
                explain(
                    "from_transformers(): there is no such head",
                    expected=f"{-heads} to {heads - 1}",
                    got=f"head={head}",
                )
            )
        self._layer, self._head, self._reduce = layer % count, head, reduce
        self.read_from = row
        shown = {"head": f"layer {self._layer}, head {head}", "rollout": "rollout"}
        what = shown.get(reduce, f"layer {self._layer}, mean of heads")
        self.name = name or f"{type(model).__name__}, {what}"
        self.mask_token: str | None = getattr(tokenizer, "mask_token", None)
        labels = getattr(loaded.config, "id2label", None) or {}
        self.classes = [labels[key] for key in sorted(labels)] or None
        if reduce != "rollout":
            self.predict_with = self._predict_with
        if reduce == "mean":
            self.heads = self._heads

    def inputs(
        self,
        texts: Sequence[str | Sequence[str]],
        labels: Sequence[str] | None = None,
        *,
        gold: Sequence[Sequence[int] | None] | None = None,
    ) -> list[Input]:
        """Return inputs with the tokenizer's tokens; special ones are never erased.

        Parameters
        ----------
        texts : sequence of str, or of lists of words
            A list that holds a special token of the tokenizer is taken as its own tokens.
        labels : sequence of str, optional
        gold : sequence of lists of int, optional
            Of texts that are lists: the marked words, from 0. All pieces of a word are marked.
        """
        found = []
        for k, text in enumerate(texts):
            ids, words = self._ids_and_words(text)
            special = self.tokenizer.get_special_tokens_mask(
                ids, already_has_special_tokens=True
            )
            marked = None if gold is None else gold[k]
            found.append(
                Input(
                    tuple(self.tokenizer.convert_ids_to_tokens(ids)),
                    fixed=frozenset(i for i, is_special in enumerate(special) if is_special),
                    gold=None
                    if marked is None
                    else frozenset(i for i, word in enumerate(words) if word in set(marked)),
                    label=None if labels is None else labels[k],
                )
            )
        return found

    def _ids_and_words(self, text: str | Sequence[str]) -> tuple[list[int], list[int | None]]:
        """Return ids, and for each which word of a list it is a piece of."""
        if isinstance(text, str):
            ids = list(self.tokenizer(text)["input_ids"])
            return ids, [None] * len(ids)
        if set(text) & set(self.tokenizer.all_special_tokens):
            return list(self.tokenizer.convert_tokens_to_ids(list(text))), list(
                range(len(text))
            )
        encoded = self.tokenizer(list(text), is_split_into_words=True)
        return list(encoded["input_ids"]), list(encoded.word_ids())

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, classes)."""
        with torch.no_grad():
            return _numbers(self._run(batch))

    def weights(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the weights (T_enc,) of the row that is shown."""
        if self._reduce == "rollout":
            causal = self.read_from < 0
            return [
                rollout(one, receptive=causal)[self.read_from] for one in self.layers(batch)
            ]
        found = []
        for one, all_ in zip(batch, self._all(batch), strict=True):
            layer = all_[self._layer]
            shown = layer.mean(0) if self._head is None else layer[self._head]
            # Weight on padding is left out, so that the sum tells: G0 looks.
            found.append(shown[self._place(one), : len(one.tokens)])
        return found

    def _heads(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return (heads, T_enc) of each input: what the weights are the average of."""
        return [
            all_[self._layer, :, self._place(one), : len(one.tokens)]
            for one, all_ in zip(batch, self._all(batch), strict=True)
        ]

    def layers(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return (layers, heads, T, T) of each input, padding left out."""
        return [
            all_[:, :, : len(one.tokens), : len(one.tokens)]
            for one, all_ in zip(batch, self._all(batch), strict=True)
        ]

    def token_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return abs(input x gradient) of the predicted class (T_enc,).

        All layers' weights are held fixed.
        """
        embedded: list[Tensor] = []

        def keep(module: nn.Module, args: Any, output: Tensor) -> Tensor:
            embedded.append(output.detach().requires_grad_())
            return embedded[-1]

        handle = self.model.get_input_embeddings().register_forward_hook(keep)
        try:
            with torch.enable_grad(), _watching(_Watch()):
                p = self._run(batch).amax(-1).sum()
                (gradient,) = torch.autograd.grad(p, embedded[0])
        finally:
            handle.remove()
        rows = (gradient * embedded[0].detach()).sum(-1).abs().double().cpu().numpy()
        return [row[: len(one.tokens)] for one, row in zip(batch, rows, strict=True)]

    def _predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, classes) with other weights in the layer's row."""
        watch = _Watch(
            layer=self._layer, head=self._head, row=self.read_from, given=list(weights)
        )
        with torch.no_grad(), _watching(watch):
            return _numbers(self._run(batch))

    def _all(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return (layers, heads, T, T) of each input, padding included."""
        watch = _Watch()
        with torch.no_grad(), _watching(watch):
            self._run(batch)
        stacked = torch.stack(watch.weights, dim=1).double().cpu().numpy()
        return list(stacked)

    def _place(self, one: Input) -> int:
        length = len(one.tokens)
        if not -length <= self.read_from < length:
            raise ConventionError(
                explain(
                    f"{self.name}: there is no such row",
                    expected=f"{-length} to {length - 1}, where {length} tokens are left",
                    got=f"row={self.read_from}",
                )
            )
        return self.read_from % length

    def _run(self, batch: Sequence[Input]) -> Tensor:
        ids = [self.tokenizer.convert_tokens_to_ids(list(one.tokens)) for one in batch]
        longest = max(len(one) for one in ids)
        filler = self.model.config.pad_token_id or 0
        padded = torch.full((len(ids), longest), filler)
        real = torch.zeros_like(padded)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = torch.tensor(one)
            real[row, : len(one)] = 1
        device = next(self.model.parameters()).device
        found = self.model(input_ids=padded.to(device), attention_mask=real.to(device))
        return found.logits.double().softmax(-1)  # type: ignore[no-any-return]


def from_transformers(model: nn.Module, tokenizer: Any, **options: Any) -> TransformersCase:
    """Return the case of a classifier; arguments as :class:`TransformersCase` takes them."""
    return TransformersCase(model, tokenizer, **options)


@contextmanager
def _watching(watch: _Watch) -> Iterator[None]:
    token = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(token)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Attend as Transformers' eager attention does: (batch, heads, T, d_head) and back."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (x.repeat_interleave(groups, 1) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query, key.transpose(-1, -2)) * scale
    if attention_mask is not None:
        scores = scores + attention_mask[..., : key.shape[-2]]
    weights = torch.softmax(scores.float(), -1).to(query.dtype)
    watch = _watch.get()
    if watch is not None:
        watch.weights.append(weights.detach())
        weights = weights.detach()
        if watch.given is not None and watch.layer == len(watch.weights) - 1:
            weights = _put(weights, watch)
    weights = nn.functional.dropout(weights, dropout, module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


def _put(weights: Tensor, watch: _Watch) -> Tensor:
    changed = weights.clone()
    heads = slice(None) if watch.head is None else watch.head
    for place, own in enumerate(watch.given or ()):
        row = torch.zeros(weights.shape[-1], dtype=weights.dtype, device=weights.device)
        row[: len(own)] = torch.as_tensor(np.asarray(own), dtype=weights.dtype)
        changed[place, heads, watch.row % len(own)] = row
    return changed


def _numbers(found: Tensor) -> Numbers:
    table: Numbers = found.detach().cpu().numpy()
    return table
