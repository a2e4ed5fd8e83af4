"""Where torch computes."""

import os

import torch

from regard.errors import InputError, explain

__all__ = ["usable_device"]


def usable_device(name: str) -> torch.device:
    """Return a device that torch can use now.

    Parameters
    ----------
    name : str
        As torch names it: ``cpu``, ``cuda``, ``cuda:1``. Plain ``cuda`` under ``torchrun`` is
        the one whose number the process has on its machine.

    Raises
    ------
    InputError
        There is no such device here.
    """
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        # Builds of torch without CUDA say so with an assertion.
        raise InputError(
            explain(
                f"--device: {name[:40]} is refused",
                expected="a device that torch can use here, as cpu or cuda",
                got=str(error).strip().splitlines()[0][:120],
                help="leave it out, or install a torch for this device",
            )
        ) from error
    return device
