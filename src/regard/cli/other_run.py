"""``regard train --resume`` with other settings: which options differ, and how to go on."""

from typing import TYPE_CHECKING, Any

from regard.cli.train_settings import FLAGS
from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.seq2seq.same_run import OtherRunError

__all__ = ["in_options"]


def in_options(error: "OtherRunError", out: str) -> InputError:
    """Return the error in the words of the command line.

    Parameters
    ----------
    error : OtherRunError
    out : str
        As the command line has it.
    """
    if not error.changes:
        return error
    # The longer run also warms up longer and looks elsewhere; that is no option of its own.
    names = {change.name for change in error.changes}
    told = [
        change
        for change in error.changes
        if not ("train.steps" in names and change.name in _FOLLOWS)
    ]
    go_on = (
        f"{error.command} --resume\ngoes on with it" if error.command else "--resume goes on"
    )
    return InputError(
        explain(
            f"{out}: the run in it was begun with other settings",
            expected="\n".join(_said(change.name, change.before) for change in told),
            got="\n".join(_said(change.name, change.now) for change in told),
            because="a run goes on with what it began with",
            help=f"{go_on}; --force begins anew, another --out keeps both",
        )
    )


_FOLLOWS = ("train.warm_up", "train.evaluate_every")


def _said(name: str, value: Any) -> str:
    """Return an option as one would write it, or the setting where there is none."""
    flag = FLAGS.get(name)
    if flag is None:
        return f"{name} = {value}"
    if isinstance(value, bool):
        # The model says which directions it reads, the option that there is one.
        is_set = value != (name == "model.bidirectional")
        return flag if is_set else f"no {flag}"
    return f"{flag} {value}" if value is not None else f"no {flag}"
