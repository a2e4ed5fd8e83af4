"""The course of a run for TensorBoard."""

from pathlib import Path
from typing import Any

from regard.errors import InputError, explain
from regard.files import unwritable
from regard.seq2seq.events import Progress

__all__ = ["Board"]


class Board:
    """Writes loss, learning rate and held-out error rates as TensorBoard reads them.

    Parameters
    ----------
    directory : Path
        Is created. Several runs may have directories side by side below one.
    step : int
        Steps done before this sitting; what a killed sitting wrote of later ones is not shown.

    Raises
    ------
    InputError
        The package tensorboard is missing, or the directory cannot be written.
    """

    def __init__(self, directory: Path, *, step: int = 0) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise InputError(
                explain(
                    "--tensorboard needs the package tensorboard",
                    expected="tensorboard, of the extra regard[tensorboard]",
                    got="no such package",
                    help="pip install 'regard[tensorboard]', or read log.csv instead",
                )
            ) from error
        try:
            self._writer: Any = SummaryWriter(str(directory), purge_step=step + 1)
        except OSError as error:
            raise InputError(unwritable(directory, error)) from error

    def close(self) -> None:
        """Write what is held back."""
        self._writer.close()

    def show(self, event: Progress) -> None:
        """Take one event."""
        if not event.is_logged:
            return
        look = event.evaluation
        self._writer.add_scalar("loss", event.loss, event.step)
        self._writer.add_scalar("learning_rate", event.rate, event.step)
        if look is not None:
            self._writer.add_scalar("mean_loss", look.loss, event.step)
            for name, rate in look.scores or (("error_rate", look.error_rate),):
                self._writer.add_scalar(f"held_out/{name}", rate, event.step)
            self._writer.flush()
