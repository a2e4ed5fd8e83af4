"""Run the user's code once and record it."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.check.naming import name_axes
from regard.check.probe import Probe
from regard.check.sizes import Sizes
from regard.check.subject import Crash, Instance, TookTooLong, crash_of, flat
from regard.check.trace.recorder import Recorder, Replace
from regard.check.trace.records import Node, Trace
from regard.check.trace.sites import complete, silent_broadcasts

__all__ = ["record"]


def record(
    instance: Instance,
    probe: Probe,
    sizes: Sizes,
    *,
    args: Mapping[str, Any] | None = None,
    replace: Replace | None = None,
) -> Trace | Crash:
    """Run once, and note every tensor.

    Parameters
    ----------
    instance : Instance
        The user's code at one set of sizes.
    probe : Probe
        Its arguments.
    sizes : Sizes
        Sizes of the named axes.
    args : mapping, optional
        Other arguments than the probe's.
    replace : callable, optional
        Called with a site's index and weights as they arise; what it returns goes on in their
        place.

    Returns
    -------
    trace : Trace or Crash
        A crash only if the object could not be built. A call that crashed has a trace up to
        the crash. Plain lists are run, and give a trace without nodes.
    """
    if instance.crash is not None:
        return instance.crash
    recorder = Recorder(instance.loaded.path, instance.loaded.source, replace)
    outputs: list[Any] = []
    try:
        given = instance.arguments(probe.args if args is None else args)
        with _recording(recorder, instance, given) as shown:
            raw = instance.apply(shown)
        outputs = list(flat(raw))
    except TookTooLong:
        raise
    except BaseException as error:
        recorder.trace.crash = crash_of(error, instance.loaded.path, "call")
    trace = recorder.finish(outputs)
    if recorder.trace.crash is None:
        trace.failed = None  # an exception the user's code caught
    with contextlib.suppress(Exception):
        name_axes(trace, probe, sizes)
        complete(trace)
        trace.broadcasts = silent_broadcasts(trace, probe)
    return trace


@contextlib.contextmanager
def _recording(recorder: Recorder, instance: Instance, given: dict[str, Any]) -> Any:
    if instance.library == "torch":
        from regard.check.trace.torch_trace import (  # noqa: PLC0415 - needs torch
            TorchRecording,
            declare_module,
        )

        if instance.module is not None:
            declare_module(recorder, instance.module)
        _declare(recorder, given)
        with TorchRecording(recorder):
            yield given
    elif instance.library == "numpy":
        from regard.check.trace.numpy_trace import Traced, following  # noqa: PLC0415

        shown = {
            name: value.view(Traced) if isinstance(value, np.ndarray) else value
            for name, value in given.items()
        }
        for name, value in shown.items():
            if isinstance(value, Traced):
                node = recorder.declare(
                    value.view(np.ndarray), "input", name, f"input:{name}", alias=value
                )
                recorder.trace.inputs[name] = node
        with following(recorder, instance.loaded.module):
            yield shown
    else:
        yield given


def _declare(recorder: Recorder, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        parts = value if isinstance(value, tuple | list) else (value,)
        tensors = [p for p in parts if hasattr(p, "shape")]
        for part in tensors:
            node: Node = recorder.declare(part, "input", name, f"input:{name}")
            if len(tensors) == 1 or name not in recorder.trace.inputs:
                recorder.trace.inputs[name] = node
