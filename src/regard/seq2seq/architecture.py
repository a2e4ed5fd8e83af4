"""What decides a model's shape: its attention, its recurrences and its sizes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from regard.errors import InputError, ShapeError, explain
from regard.seq2seq.vocab import FIRST

__all__ = ["ATTENTIONS", "LOCAL", "LUONG", "ModelConfig"]

LUONG = ("dot", "general", "concat")
"""The scores of Luong et al. 2015, section 3.1, which are also its global attentions' names."""

LOCAL = ("local-m", "local-p")
"""Their local attentions, section 3.2."""

ATTENTIONS = (
    "none",
    "bahdanau",
    *LUONG,
    *LOCAL,
    "coverage",
    "location",
    "monotonic",
    "bahdanau-paper",
)

# As regard.nn.recurrence has them; that loads PyTorch, and a configuration is read without it.
_CELLS = ("gru", "lstm")

# How many entries the first version had: those before ``cell``.
_FIRST_ENTRIES = 12

# What an entry is where it has a meaning and was left out, and where it has one.
_PARTICULAR: dict[str, tuple[Any, tuple[str, ...]]] = {
    "input_feeding": (False, LUONG),
    "score": ("general", LOCAL),
    "reach": (10.0, LOCAL),
    "filters": (10, ("location",)),
    "filter_width": (11, ("location",)),
}


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides a model's shape.

    Parameters
    ----------
    source_symbols, target_symbols : int
        Sizes of the vocabularies, the four reserved ids included.
    attention : str
        One of :data:`ATTENTIONS`. ``none``; ``bahdanau``, whose score reads the state before a
        step, and ``bahdanau-paper``, the same with the paper's own cell and output; ``dot``,
        ``general`` and ``concat`` of Luong et al., which read the state after it; their
        ``local-m`` and ``local-p``; ``coverage`` (See et al.), ``location`` (Chorowski et al.)
        and ``monotonic`` (Raffel et al.). Each asks with the state that its paper asks with;
        no entry changes that.
    d_in : int
        Size of the embeddings of both sides.
    d_hidden : int
        Encoder states of one direction.
    d_s : int
        Decoder state. The score ``dot`` needs it to equal :attr:`d_h`.
    d_attn : int
        Where an additive score compares; other scores ignore it.
    d_readout : int
        Size of a tanh layer below the output layer; 0 leaves it out. With ``bahdanau-paper``
        that of its maxout layer, where 0 takes half of ``d_s`` as the paper does.
    bidirectional : bool
    layers : int
        Of the encoder.
    dropout : float
        0 to below 1.
    v_scale : float
        How much larger than usual the score's vector of ``bahdanau`` starts; above 1 the
        alignment forms earlier.
    cell : {"gru", "lstm"}
        Of encoder and decoder; ``bahdanau-paper`` has its own.
    decoder_layers : int
        With ``none`` and the attentions of Luong et al. the highest layer asks, with the others
        the lowest (:mod:`regard.nn.recurrence`); ``bahdanau-paper`` has one.
    tied : bool
        The output layer's matrix is the target's embedding; ``d_readout`` must equal ``d_in``.
    input_feeding : bool, optional
        Of ``dot``, ``general`` and ``concat``: each step also reads the attentional state
        before it. False if left out.
    score : {"dot", "general", "concat"}, optional
        Of ``local-m`` and ``local-p``; ``general`` if left out.
    reach : float, optional
        Of ``local-m`` and ``local-p``: how far to either side a step looks, above 0; 10 if left
        out, as in the paper.
    filters, filter_width : int, optional
        Of ``location``: number of filters and their odd width, 10 and 11 if left out. The
        paper's width is 201, for frames of speech.

    Raises
    ------
    InputError
        A value is outside its range, or an entry has no meaning with the attention.
    ShapeError
        The score ``dot`` with ``d_s`` different from ``d_h``.
    """

    source_symbols: int
    target_symbols: int
    attention: str = "bahdanau"
    d_in: int = 64
    d_hidden: int = 96
    d_s: int = 192
    d_attn: int = 128
    d_readout: int = 0
    bidirectional: bool = True
    layers: int = 1
    dropout: float = 0.1
    v_scale: float = 4.0
    cell: str = "gru"
    decoder_layers: int = 1
    tied: bool = False
    input_feeding: bool | None = None
    score: str | None = None
    reach: float | None = None
    filters: int | None = None
    filter_width: int | None = None

    @property
    def d_h(self) -> int:
        """Size of an encoder state, both directions together."""
        return self.d_hidden * (2 if self.bidirectional else 1)

    def __post_init__(self) -> None:
        _require(self, "attention", self.attention in ATTENTIONS, _one_of(ATTENTIONS))
        for name in ("source_symbols", "target_symbols"):
            enough = getattr(self, name) > FIRST
            _require(self, name, enough, f"at least {FIRST + 1}: the reserved ids and one")
        for name in ("d_in", "d_hidden", "d_s", "d_attn", "layers", "decoder_layers"):
            _require(self, name, getattr(self, name) >= 1, "at least 1")
        _require(self, "d_readout", self.d_readout >= 0, "at least 0")
        _require(self, "dropout", 0 <= self.dropout < 1, "from 0 to below 1")
        _require(self, "v_scale", 0 < self.v_scale < float("inf"), "a positive number")
        _require(self, "cell", self.cell in _CELLS, _one_of(_CELLS))
        self._settle_particulars()
        if self.attention == "bahdanau-paper":
            self._settle_paper()
        if self.tied:
            _require_together(self, "tied", "d_readout", self.d_in, "d_in")
        if "dot" in (self.attention, self.score) and self.d_s != self.d_h:
            raise ShapeError(
                explain(
                    "ModelConfig(): `d_s` does not fit `d_h`, which dot attention needs",
                    expected=f"d_s = d_h = {self.d_h}",
                    got=f"d_s = {self.d_s}",
                    because=f"d_h = {self.d_h} comes from d_hidden = {self.d_hidden}"
                    + " in two directions" * self.bidirectional,
                    help=f"set d_s to {self.d_h}, or use "
                    + ("attention" if self.attention == "dot" else "score")
                    + '="general"',
                )
            )

    def _settle_particulars(self) -> None:
        """Refuse entries that say nothing about this attention, and fill in those that do."""
        for name, (usual, attentions) in _PARTICULAR.items():
            value = getattr(self, name)
            if self.attention not in attentions:
                # False says what is so.
                _require(
                    self,
                    name,
                    value is None or value is False,
                    f"nothing, as attention={self.attention!r} has no such option",
                    help=f"it belongs to {_one_of(attentions)}",
                )
                object.__setattr__(self, name, None)
            elif value is None:
                object.__setattr__(self, name, usual)
        if self.score is not None:
            _require(self, "score", self.score in LUONG, _one_of(LUONG))
        if self.reach is not None:
            _require(self, "reach", 0 < self.reach < float("inf"), "a positive number")
        if self.filters is not None and self.filter_width is not None:
            _require(self, "filters", self.filters >= 1, "at least 1")
            odd = self.filter_width >= 1 and self.filter_width % 2 == 1
            _require(self, "filter_width", odd, "odd and at least 1, so that it has a middle")

    def _settle_paper(self) -> None:
        """Hold ``bahdanau-paper`` to what the paper's decoder is."""
        why = "the paper's decoder has a recurrence of its own, of one layer"
        _require(self, "cell", self.cell == "gru", "'gru'", because=why)
        _require(self, "decoder_layers", self.decoder_layers == 1, "1", because=why)
        why = "its first state is made of the encoder's backward half"
        _require(self, "bidirectional", self.bidirectional, "True", because=why)
        why = "its output layer reads a maxout layer"
        _require(self, "tied", not self.tied, "False", because=why)
        if not self.d_readout:
            object.__setattr__(self, "d_readout", max(1, self.d_s // 2))

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads.

        A model that the first version could describe has the form that it had then, so that
        what was computed of the form stays right.
        """
        form = asdict(self)
        for field in fields(self)[_FIRST_ENTRIES:]:
            if form[field.name] in (None, field.default, False):
                del form[field.name]
        return form

    @classmethod
    def from_json(cls, form: Any) -> "ModelConfig":
        """Rebuild a configuration.

        Entries that came with later versions, ``cell`` and those behind it, may be missing.

        Raises
        ------
        InputError
            ``form`` has other entries, or a value of another type.
        """
        kinds = {field.name: field.type for field in fields(cls)}
        needed = list(kinds)[:_FIRST_ENTRIES]
        if not isinstance(form, Mapping) or not set(needed) <= set(form) <= set(kinds):
            raise _refused("form", f"entries {', '.join(kinds)}", form)
        for name, value in form.items():
            # Real types here: one, or one and None.
            allowed = get_args(kinds[name]) or (kinds[name],)
            number = float in allowed and type(value) is int
            if not number and type(value) not in allowed:
                said = " or ".join(
                    "None" if kind is type(None) else kind.__name__ for kind in allowed
                )
                raise _refused(name, f"a value of type {said}", value)
        return cls(**form)


def _one_of(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _require(
    config: ModelConfig,
    name: str,
    fits: bool,
    expected: str,
    *,
    because: str | None = None,
    help: str | None = None,  # noqa: A002 - the row's printed name
) -> None:
    if not fits:
        raise _refused(name, expected, getattr(config, name), because=because, help=help)


def _require_together(
    config: ModelConfig, entry: str, name: str, size: int, other: str
) -> None:
    if getattr(config, name) != size:
        raise _refused(
            name,
            f"{name} = {other} = {size}",
            getattr(config, name),
            because=f"{entry}=True reads the layer of {name} with the matrix of {other}",
        )


def _refused(
    name: str,
    expected: str,
    got: object,
    *,
    because: str | None = None,
    help: str | None = None,  # noqa: A002 - the row's printed name
) -> InputError:
    return InputError(
        explain(
            f"ModelConfig(): `{name}` is refused",
            expected=expected,
            got=repr(got)[:80],
            because=because,
            help=help,
        )
    )
