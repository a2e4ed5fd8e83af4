"""A run's directory while it runs: claimed once, saved to often, given back if nothing came."""

import contextlib
from contextlib import ExitStack
from pathlib import Path

from regard.errors import InputError, explain
from regard.files import is_leftover
from regard.seq2seq.checkpoint import (
    FILES,
    Description,
    is_run,
    load_training,
    save_description,
    save_training,
    save_training_info,
    save_weights,
)
from regard.seq2seq.claim import ENSEMBLE, PROBE, claim_directory, other_kind
from regard.seq2seq.events import TrainingState
from regard.seq2seq.only_writer import only_writer
from regard.seq2seq.train import Trainer

__all__ = ["Keeper"]


class Keeper:
    """Saves a run.

    Parameters
    ----------
    directory : Path
    description : Description
        Of the model.
    """

    def __init__(self, directory: Path, description: Description) -> None:
        self._directory = directory
        self._description = description
        self._created = False
        self._is_new = False  # nothing of value is in it yet
        self._written: list[int] | None = None  # the looks whose weights are on the disk
        self._loaded: TrainingState | None = None
        self._closing: ExitStack | None = None

    def hold(self, closing: ExitStack) -> None:
        """Keep other runs out of the directory until `closing` closes.

        A directory that is not there yet is held from :meth:`claim` on.

        Raises
        ------
        InputError
            Another run holds it.
        """
        if self._directory.is_dir():
            closing.enter_context(only_writer(self._directory))
        else:
            self._closing = closing

    @property
    def log(self) -> Path:
        """Where the course of the run is written."""
        return self._directory / "log.csv"

    def was_begun(self) -> bool:
        """Return whether there is a run to go on with.

        Not if one was killed before it had said what it is: it then begins anew. A directory
        with anything else in it, or none at all, counts as one, and is refused when it is read.

        Raises
        ------
        InputError
            It is an ensemble's.
        """
        self._refuse_ensemble()
        try:
            inside = {entry.name for entry in self._directory.iterdir()}
        except OSError:
            return True
        ours = {name for name in inside if is_leftover(name, {*FILES, PROBE}) or name == PROBE}
        return bool(inside - ours - {"vocab.json"})

    def state(self) -> TrainingState | None:
        """Read what the run needs to go on; None if it was stopped before its first save.

        Raises
        ------
        InputError
            The file is damaged, or is not there though weights are.
        """
        if not (self._directory / "training.safetensors").exists():
            # The state is always saved first, so somebody took it away.
            if (self._directory / "model.safetensors").exists():
                raise InputError(
                    explain(
                        f"{self._directory}: there is a model, but not what --resume goes on "
                        "from",
                        expected="training.safetensors beside model.safetensors",
                        got="model.safetensors alone",
                        because="beginning anew would write over the model",
                        help="bring the file back, train to another --out, or begin anew with "
                        "--force",
                    )
                )
            return None
        self._loaded = load_training(self._directory)
        return self._loaded

    def claim(self, trainer: Trainer, *, force: bool, resume: bool) -> None:
        """Make sure that the directory can be written to, and begin the run in it or go on.

        Raises
        ------
        InputError
            As :func:`~regard.seq2seq.claim.claim_directory` does.
        """
        self._refuse_ensemble()
        self._created = claim_directory(
            self._directory, names=FILES, is_ours=is_run, force=force, resume=resume
        )
        if self._closing is not None:
            self._closing.enter_context(only_writer(self._directory))
            self._closing = None
        self._is_new = not resume
        if not resume:
            save_description(self._directory, self._description)
        elif self._loaded is not None:
            # The run may have been killed after its state was saved and before the rest.
            save_training_info(self._directory, self._loaded)
            self._save_weights(trainer)

    def save(self, trainer: Trainer) -> None:
        """Save state and weights.

        The state goes first: it has all weights in it, so that weights on the disk are never
        of a later look than the state, and :meth:`claim` makes up for a lost second half.

        Raises
        ------
        InputError
            The file system refuses.
        """
        save_training(self._directory, trainer.state())
        if not trainer.chosen() or trainer.chosen() != self._written:
            self._save_weights(trainer)
        self._is_new = False

    def take_back(self) -> None:
        """Leave nothing of a run that failed before its first save.

        It would stand in the way of the next one.
        """
        if not self._is_new:
            return
        with contextlib.suppress(OSError):
            for name in reversed(FILES):
                (self._directory / name).unlink(missing_ok=True)
            if self._created:
                self._directory.rmdir()

    def _refuse_ensemble(self) -> None:
        if (self._directory / ENSEMBLE).is_file():
            raise other_kind(
                self._directory,
                wanted="the run of one model",
                found="an ensemble",
                help="give --ensemble and the number of its members",
            )

    def _save_weights(self, trainer: Trainer) -> None:
        save_weights(self._directory, self._description, trainer.best_weights())
        self._written = trainer.chosen()
