"""The processes that train one model together, on one machine or on several.

``torchrun`` starts them and says in the environment who is who. Each computes the gradient of
its share of a step's batches; the sum is the same in all of them, and so are the weights.
"""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from regard.errors import InputError, RegardError, explain

__all__ = ["ALONE", "World", "joined"]

_T = TypeVar("_T")

_PATIENCE = timedelta(hours=2)  # others wait while the first one scores held-out data


class World:
    """One process among those of a run.

    Attributes
    ----------
    rank : int
        Which one this is, from 0. Process 0 looks, saves and speaks.
    size : int
        How many there are.
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank = rank
        self.size = size

    @property
    def is_first(self) -> bool:
        """Whether this is the process that looks, saves and speaks."""
        return self.rank == 0

    def share(self, count: int) -> range:
        """Return which of ``count`` batches are this process's."""
        return range(self.rank, count, self.size)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes, in one message."""
        if self.size == 1:
            return
        whole = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(whole)
        start = 0
        for tensor in tensors:
            tensor.copy_(whole[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()

    def from_first(self, make: Callable[[], _T]) -> _T:
        """Return what `make` returns in the first process; the others do not call it.

        Raises
        ------
        RegardError
            What `make` raised, in every process.
        """
        if self.size == 1:
            return make()
        told: list[Any] = [None, None]
        if self.is_first:
            try:
                told[0] = make()
            except RegardError as error:
                told[1] = error
        dist.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1]
        return cast(_T, told[0])


ALONE = World()
"""The only process of its run."""


def joined(*, device: str = "cpu") -> World:
    """Join the other processes that ``torchrun`` started; without it, be alone.

    Parameters
    ----------
    device : str
        ``cpu`` talks over gloo, ``cuda`` over NCCL.

    Raises
    ------
    InputError
        The environment names processes that cannot be reached.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size <= 1 or "RANK" not in os.environ:
        return ALONE
    try:
        if not dist.is_initialized():
            backend = "nccl" if device.startswith("cuda") else "gloo"
            dist.init_process_group(backend, timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        raise InputError(
            explain(
                "the processes of this run do not find each other",
                expected=f"{size} processes, as WORLD_SIZE says",
                got=str(error).strip().splitlines()[0][:200],
                help="start them with torchrun",
            )
        ) from error
    return World(dist.get_rank(), dist.get_world_size())
