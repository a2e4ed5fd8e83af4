"""``checks``: the findings of ``regard check`` as tests of your own, one a rule."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from regard.check.plugin.suite import Suite
from regard.check.settings import Limits

__all__ = ["checks"]

_F = TypeVar("_F", bound=Callable[..., Any])


def checks(
    target: Any,
    *,
    contract: Mapping[str, Any] | None = None,
    axes: Mapping[str, str] | None = None,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    fail_on: str = "error",
    seed: int = 0,
    repair: bool = True,
    seconds: float = 30.0,
    **statements: Any,
) -> Callable[[_F], _F]:
    """Parametrise a test over the rules of ``regard check``.

    Parameters
    ----------
    target : function, class, module object, or "file.py:name"
        What to check. It runs in a process of its own, from its file.
    contract : mapping, optional
        What you declare, in the contract's form; what is left out is guessed, and a failure
        says what was.
    axes : mapping of str to str, optional
        Axes of some arguments, such as ``{"q": "batch T_dec d_h"}``.
    select, ignore : iterable of str
        Rules by code, name or group; all are tested if none is selected.
    fail_on : "error" | "warning" | "note"
        The mildest finding that fails a test; milder ones are printed.
    seed : int
        Of the inputs.
    repair : bool
        Whether failures show a proven fix, which takes longer.
    seconds : float
        What the check may take; it runs once for all tests of a target.
    **statements
        Fields of the contract by name, and ``mask="keep"`` or ``"drop"``.

    Returns
    -------
    decorate : callable
        For a test function with an argument ``check``, which it calls.

    Raises
    ------
    InputError
        The target cannot be found in a file, or something stated is unknown.
    ConventionError
        A contract and single statements are both given.

    Examples
    --------
    A test file; its tests are called ``test_attend[RG301-softmax-axis]`` and so on::

        import regard.testing as rt
        from decoder import attend

        @rt.checks(attend, mask="keep")
        def test_attend(check):
            check()
    """
    suite = Suite.of(
        target,
        contract=contract,
        axes=axes,
        select=select,
        ignore=ignore,
        statements=statements,
        fail_on=fail_on,
        seed=seed,
        repair=repair,
        limits=Limits(seconds=seconds),
    )

    def decorate(function: _F) -> _F:
        import pytest  # noqa: PLC0415 - whoever has tests has it

        marked: _F = pytest.mark.parametrize("check", suite.tests, ids=str)(function)
        return marked

    return decorate
