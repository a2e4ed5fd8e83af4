"""A trained model as three ONNX files: encoder, decoder step, and the whole greedy search.

Batch and lengths are free in all of them. What a user of the files needs is in the docstrings
of the functions here, and in the model card.
"""

import json
from collections.abc import Mapping

import numpy as np

from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.export.graph import Doors, Graph, Value, model_bytes
from regard.seq2seq.export.onnx_step import OnnxStep, require_exportable
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.runtime.cells import Floats
from regard.seq2seq.runtime.exported import digest_of, header_of
from regard.seq2seq.runtime.onnx_model import OnnxTransducer
from regard.seq2seq.vocab import BOS, EOS, PAD, UNK

__all__ = ["onnx_files"]

_SOURCE: Doors = {"source": ("int64", ["batch", "T_enc"]), "lengths": ("int64", ["batch"])}
# PyTorch's gates in the order in which ONNX has them.
_ORDER = {"gru": (1, 0, 2), "lstm": (0, 3, 1, 2)}


def onnx_files(
    model: Seq2Seq, description: Description
) -> tuple[dict[str, bytes], OnnxTransducer]:
    """Return the files, and what answers texts with them.

    Raises
    ------
    InputError
        The model has an attention that is not written as ONNX.
    """
    config = description.model
    require_exportable(config, "onnx_files()")
    weights = weights_of(model)
    step = OnnxStep(config, weights)
    # Usable alone: each file holds the vocabularies and the rest of the description. The sum of
    # the weights says which files belong together.
    header = {**header_of(description), "weights": digest_of({}, weights)}
    metadata = {"regard": json.dumps(header, ensure_ascii=False)}
    files = {
        "encoder.onnx": _encoder(config, weights, step),
        "step.onnx": _step(config, step),
        "greedy.onnx": _greedy(config, weights, step),
    }
    made = {name: model_bytes(graph, metadata) for name, graph in files.items()}
    return made, OnnxTransducer.of(made, "the exported model")


def _memory(config: ModelConfig, step: OnnxStep) -> Doors:
    return {
        "keys": ("float", ["batch", "T_enc", step.d_key]),
        "values": ("float", ["batch", "T_enc", config.d_h]),
        "mask": ("bool", ["batch", "T_enc"]),
    }


def _state(config: ModelConfig, step: OnnxStep, end: str = "") -> Doors:
    found: Doors = {"state" + end: ("float", ["batch", step.d_state])}
    if step.carries:
        size = "T_enc" if step.carries == "weights" else config.d_s
        found["carried" + end] = ("float", ["batch", size])
    return found


def _encoder(config: ModelConfig, weights: Mapping[str, Floats], step: OnnxStep) -> object:
    """Return source, lengths -> keys, values, mask, state and, where there is one, carried."""
    g = Graph()
    found = _encoded(g, config, weights, step)
    outputs = {**_memory(config, step), **_state(config, step)}
    for name in outputs:
        g.called(found[name], name)
    return g.built("encoder", _SOURCE, outputs)


def _step(config: ModelConfig, step: OnnxStep) -> object:
    """Return previous, memory and state -> symbol_scores, the next state, weights."""
    g = Graph()
    state = _state(config, step)
    inputs: Doors = {"previous": ("int64", ["batch"]), **_memory(config, step), **state}
    memory = {name: name for name in _memory(config, step)}
    carried = "carried" if step.carries else None
    made = step.step(g, "previous", memory, "state", carried)
    outputs: Doors = {
        "symbol_scores": ("float", ["batch", config.target_symbols]),
        **_state(config, step, "_after"),
    }
    g.called(made.scores, "symbol_scores")
    g.called(made.state, "state_after")
    if made.carried is not None:
        g.called(made.carried, "carried_after")
    if made.weights is not None:
        outputs["weights"] = ("float", ["batch", "T_enc"])
        g.called(made.weights, "weights")
    if not step.attends:  # a graph's inputs should be used
        for name in memory:
            del inputs[name]
    return g.built("step", inputs, outputs)


def _greedy(config: ModelConfig, weights: Mapping[str, Floats], step: OnnxStep) -> object:
    """Return source, lengths, limits -> symbols, log_probs and, with attention, weights.

    ``limits`` (batch,) are the symbols that each target may have. ``symbols`` (batch, steps)
    are ids: of an answer that ended, those before its 2; of one that was cut, its first
    ``limits``, and there is no 2. Behind an answer stands 0. ``weights`` are
    (batch, steps, T_enc).
    """
    g = Graph()
    found = _encoded(g, config, weights, step)
    memory = {name: found[name] for name in _memory(config, step)}
    longest = g("ReduceMax", "limits", axes=[0], keepdims=0)
    count = g("Add", longest, g.constant(np.int64(1)))
    first = g("Add", g("Mul", "lengths", g.constant(np.int64(0))), g.constant(np.int64(BOS)))
    done = g("Less", "lengths", g.constant(np.int64(0)))
    states = list(_state(config, step))
    body = _body(config, step, memory)
    given = [count, g.constant(np.array(True)), first, done, *(found[name] for name in states)]
    outputs = 2 + len(states) + 2 + step.attends
    made = g.several(outputs, "Loop", *given, body=body)
    steps: Doors = {
        "symbols": ("int64", ["batch", "steps"]),
        "log_probs": ("float", ["batch", "steps"]),
    }
    if step.attends:
        steps["weights"] = ("float", ["batch", "steps", "T_enc"])
    for name, value in zip(steps, made[2 + len(states) :], strict=True):
        perm = [1, 0, 2] if name == "weights" else [1, 0]
        g.called(g("Transpose", value, perm=perm), name)
    limits: Doors = {"limits": ("int64", ["batch"])}
    return g.built("greedy", {**_SOURCE, **limits}, steps)


def _body(config: ModelConfig, step: OnnxStep, memory: Mapping[str, Value]) -> object:
    """Return one turn of the loop; keys, values and mask are those of the graph around it."""
    g = Graph("turn_")
    carried = "carried_in" if step.carries else None
    made = step.step(g, "previous_in", memory, "state_in", carried)
    never = np.zeros(config.target_symbols, np.float32)
    never[[PAD, BOS, UNK]] = -np.inf
    log_probs = g("LogSoftmax", g("Add", made.scores, g.constant(never)), axis=-1)
    symbol = g("ArgMax", log_probs, axis=-1, keepdims=0)
    each = g.squeeze(g("GatherElements", log_probs, g.unsqueeze(symbol, 1), axis=1), 1)
    ended = g("Equal", symbol, g.constant(np.int64(EOS)))
    at_limit = g("LessOrEqual", "limits", "turn")
    # What comes at the limit and is no end was not asked for.
    nothing = g("Or", "done_in", g("And", at_limit, g("Not", ended)))
    shown = g("Where", nothing, g.constant(np.int64(PAD)), symbol)
    done = g("Or", "done_in", g("Or", ended, at_limit))
    going = g("Cast", g("Not", done), to=7)
    more = g("Greater", g("ReduceMax", going, axes=[0], keepdims=0), g.constant(np.int64(0)))
    outputs: Doors = {
        "going": ("bool", []),
        "previous_out": ("int64", ["batch"]),
        "done_out": ("bool", ["batch"]),
        **_state(config, step, "_out"),
        "symbol": ("int64", ["batch"]),
        "log_prob": ("float", ["batch"]),
    }
    values = {
        "going": more,
        "previous_out": symbol,
        "done_out": done,
        "state_out": made.state,
        "carried_out": made.carried,
        "symbol": shown,
        "log_prob": each,
        "looked": made.weights,
    }
    if step.attends:
        outputs["looked"] = ("float", ["batch", "T_enc"])
    for name in outputs:
        g.called(str(values[name]), name)
    inputs: Doors = {
        "turn": ("int64", []),
        "going_in": ("bool", []),
        "previous_in": ("int64", ["batch"]),
        "done_in": ("bool", ["batch"]),
        **_state(config, step, "_in"),
    }
    return g.built("turn", inputs, outputs)


def _encoded(
    g: Graph, config: ModelConfig, weights: Mapping[str, Floats], step: OnnxStep
) -> dict[str, Value]:
    """Add the encoder and what the decoder prepares."""
    turned = g("Transpose", "source", perm=[1, 0])
    layer_in = g("Gather", g.constant(weights["encoder.embedding.weight"]), turned, axis=0)
    lengths = g("Cast", "lengths", to=6)
    ends = ("", "_reverse") if config.bidirectional else ("",)
    last = ""
    for layer in range(config.layers):
        given = [
            np.stack(
                [
                    _ordered(
                        weights[f"encoder.{config.cell}.{name}_l{layer}{end}"], config.cell
                    )
                    for end in ends
                ]
            )
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        ]
        constants = [given[0], given[1], np.concatenate(given[2:], axis=1)]
        options = {"linear_before_reset": 1} if config.cell == "gru" else {}
        states, last = g.several(
            2,
            config.cell.upper(),
            layer_in,
            *map(g.constant, constants),
            lengths,
            hidden_size=config.d_hidden,
            direction="bidirectional" if config.bidirectional else "forward",
            **options,
        )
        # (T_enc, directions, batch, d_hidden)
        joined = g("Transpose", states, perm=[0, 2, 1, 3])
        layer_in = g("Reshape", joined, g.constant([0, 0, config.d_h]))
    values = g("Transpose", layer_in, perm=[1, 0, 2])
    t_enc = g("Gather", g("Shape", "source"), g.constant(np.int64(1)), axis=0)
    zero, one = g.constant(np.int64(0)), g.constant(np.int64(1))
    columns = g.unsqueeze(g("Range", zero, t_enc, one), 0)
    mask = g("Less", columns, g.unsqueeze("lengths", 1))
    found = {"values": values, "keys": step.keys(g, values), "mask": mask}
    if config.attention == "bahdanau-paper":
        found["state"] = step.paper_state(g, values)
    else:
        read = g("Reshape", g("Transpose", last, perm=[1, 0, 2]), g.constant([0, config.d_h]))
        bridge = weights["encoder.bridge.weight"], weights["encoder.bridge.bias"]
        found["state"] = g("Tanh", g.linear(read, *bridge))
    if step.carries == "weights":
        found["carried"] = g("Mul", g("Cast", mask, to=1), g.constant(np.float32(0)))
    elif step.carries:
        part = g.part(found["state"], 0, config.d_s)
        found["carried"] = g("Mul", part, g.constant(np.float32(0)))
    return found


def _ordered(value: Floats, cell: str) -> Floats:
    gates = np.split(value, len(_ORDER[cell]))
    return np.concatenate([gates[place] for place in _ORDER[cell]])
