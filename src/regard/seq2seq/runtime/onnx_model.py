"""A model exported to ONNX, run by onnxruntime: text in, text out, without PyTorch."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import InputError, RegardError, explain
from regard.files import unreadable
from regard.seq2seq.description import Description
from regard.seq2seq.rewriter import Asked
from regard.seq2seq.runtime.cells import Floats, Ids
from regard.seq2seq.runtime.exported import FORMAT, described
from regard.seq2seq.runtime.seal import has_whole_seal
from regard.seq2seq.runtime.transducer import NumpyTransducer, padded
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.search.record import Record
from regard.version import __version__

__all__ = ["ONNX_FILES", "OnnxModel", "OnnxTransducer"]

ONNX_FILES = ("encoder.onnx", "step.onnx", "greedy.onnx")


@dataclass(frozen=True)
class _Memory:
    arrays: dict[str, Any]

    def take(self, sources: Ids) -> "_Memory":
        return _Memory({name: value[sources] for name, value in self.arrays.items()})


@dataclass(frozen=True)
class _State:
    arrays: dict[str, Any]

    def take(self, rows: Ids) -> "_State":
        return _State({name: value[rows] for name, value in self.arrays.items()})


class OnnxModel:
    """Encoder and step as :class:`regard.seq2seq.runtime.model.Steps`.

    Parameters
    ----------
    encoder, step : onnxruntime.InferenceSession
    """

    def __init__(self, encoder: Any, step: Any) -> None:
        self._encoder, self._step = encoder, step
        self._made = [each.name for each in encoder.get_outputs()]
        self._asks = {each.name for each in step.get_inputs()}
        self._repeated: tuple[_Memory, int, _Memory] | None = None

    @property
    def attends(self) -> bool:
        """Whether steps return attention weights."""
        return "keys" in self._asks

    def start(self, source: Ids, lengths: Ids) -> tuple[_Memory, _State]:
        """Encode a batch."""
        found = self._encoder.run(None, {"source": source, "lengths": lengths})
        arrays = dict(zip(self._made, found, strict=True))
        state = {name: arrays.pop(name) for name in ("state", "carried") if name in arrays}
        return _Memory(arrays), _State(state)

    def step(
        self, previous: Ids, memory: _Memory, state: _State
    ) -> tuple[Floats, _State, Floats | None]:
        """Take one step."""
        given = self._for_rows(memory, len(previous)).arrays if self.attends else {}
        asked = {"previous": previous, **given, **state.arrays}
        names = ["symbol_scores", *(f"{name}_after" for name in state.arrays)]
        found = self._step.run([*names, "weights"] if self.attends else names, asked)
        after = dict(zip(state.arrays, found[1:], strict=False))
        return found[0], _State(after), found[-1] if self.attends else None

    def _for_rows(self, memory: _Memory, rows: int) -> _Memory:
        """Return the memory with an entry for every row, kept for the next step."""
        width = rows // len(memory.arrays["mask"])
        if width == 1:
            return memory
        if (
            self._repeated is None
            or self._repeated[0] is not memory
            or self._repeated[1] != width
        ):
            rows_of = np.repeat(np.arange(rows // width), width)
            self._repeated = (memory, width, memory.take(rows_of))
        return self._repeated[2]


class OnnxTransducer(NumpyTransducer):
    """Rewrites texts with what ``regard export --to onnx`` wrote.

    Parameters
    ----------
    model : OnnxModel
    description : Description
    greedy : onnxruntime.InferenceSession
        The whole greedy search.
    """

    def __init__(self, model: OnnxModel, description: Description, greedy: Any) -> None:
        super().__init__(model, description)
        self._greedy = greedy

    @classmethod
    def load(cls, path: str | Path) -> "OnnxTransducer":
        """Read a directory that ``regard export --to onnx`` wrote, or name one of its files.

        Raises
        ------
        InputError
            A file is missing, damaged, or another program's.
        """
        path = Path(path)
        directory = path.parent if path.name in ONNX_FILES else path
        files = {}
        for name in ONNX_FILES:
            try:
                files[name] = (directory / name).read_bytes()
            except OSError as error:
                raise InputError(
                    unreadable(
                        directory / name,
                        error,
                        expected="a file as `regard export --to onnx` writes it",
                        missing="check the path, or export a model first",
                    )
                ) from error
        return cls.of(files, str(directory))

    @classmethod
    def of(cls, files: Mapping[str, bytes], name: str) -> "OnnxTransducer":
        """Make one of the files' contents; ``name`` is what errors call them."""
        import onnxruntime  # noqa: PLC0415 - only where it is asked for

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        sessions = {}
        for each in ONNX_FILES:
            if not has_whole_seal(files[each]):
                raise _damaged(f"{name}/{each}", "no check sum that fits its content")
            try:
                sessions[each] = onnxruntime.InferenceSession(
                    files[each], options, providers=["CPUExecutionProvider"]
                )
            except Exception as error:  # the library has no base class of its own errors
                raise _damaged(f"{name}/{each}", str(error)) from error
        headers = {
            each: session.get_modelmeta().custom_metadata_map.get("regard", "")
            for each, session in sessions.items()
        }
        if len(set(headers.values())) != 1:
            raise _damaged(name, "files of different models")
        description = _description(f"{name}/{ONNX_FILES[0]}", headers[ONNX_FILES[0]])
        model = OnnxModel(sessions["encoder.onnx"], sessions["step.onnx"])
        return cls(model, description, sessions["greedy.onnx"])

    def answer(self, asked: Asked) -> list[list[Hypothesis]]:
        """Return the hypotheses of every source, the best first."""
        how = asked.how
        if how.temperature is not None or how.beam > 1 or asked.constraint is not None:
            return super().answer(asked)
        source, lengths = padded(asked.ids)
        looks = self.attends and (asked.need_weights or bool(how.ranking.coverage))
        names = ["symbols", "log_probs"] + ["weights"] * looks
        given = {"source": source, "lengths": lengths, "limits": np.array(asked.limits)}
        symbols, log_probs, *weights = self._greedy.run(names, given)
        rows = np.arange(len(source))
        record = Record(
            rows=[rows] * symbols.shape[1],
            symbols=list(symbols.T),
            log_probs=list(log_probs.T),
            weights=list(weights[0].swapaxes(0, 1)) if weights else [],
        )
        found = record.hypotheses(
            asked.limits,
            lengths.tolist(),
            ranking=how.ranking,
            need_weights=asked.need_weights,
        )
        return [[each] for each in found]


def _description(name: str, text: str) -> Description:
    try:
        header = json.loads(text)
        if header["format"] != FORMAT:
            raise InputError(
                explain(
                    f"{name}: the file is of another format",
                    expected=f"format {FORMAT}, which regard {__version__} reads",
                    got=f"format {header['format']!r}",
                    help="use that version, or export again",
                )
            )
        return described(header)
    except RegardError as error:
        raise InputError(f"{name}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(name, f"no description of a model: {error}") from error


def _damaged(name: str, got: str) -> InputError:
    return InputError(
        explain(
            f"{name}: this is no whole exported model",
            expected="files as `regard export --to onnx` writes them",
            got=got[:300],
            help="copy them again, or export again",
        )
    )
