"""Options of ``regard check`` that declare what the code means: a contract in pieces."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from regard.cli.options import Number

__all__ = ["contract_options", "statements"]

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--axes", multiple=True, metavar="NAME=AXES", help='As q="batch T_dec d_s".'),
    click.option("--returns", multiple=True, metavar="NAME=AXES", help="Results, in order."),
    click.option("--weights", metavar="NAME", help="The result that is the alignment."),
    click.option("--kind", multiple=True, metavar="NAME=KIND", help="As lens=lengths."),
    click.option(
        "--mask", type=click.Choice(["keep", "drop"]), help="What True means in masks."
    ),
    click.option("--score", metavar="SCORE", help="additive, dot, general, scaled_dot, ..."),
    click.option("--scale", metavar="TEXT", help="Of the scores, as 1/sqrt(d_head)."),
    click.option("--activation", metavar="NAME", help="Of an additive score, if not tanh."),
    click.option("--causal", type=click.Choice(["top_left", "bottom_right"])),
    click.option("--window", type=Number(int, 1), help="Keys that a query may see."),
    click.option("--positions", metavar="HOW", help="Order matters: rotary, content, yes, ..."),
    click.option(
        "--paper",
        type=click.Choice(["bahdanau", "luong"]),
        help="Whose step a query is: s_{t-1} or s_t.",
    ),
    click.option("--init", multiple=True, metavar="NAME=SIZE", help="Constructor arguments."),
    click.option("--value", multiple=True, metavar="NAME=VALUE", help="Other arguments."),
    click.option("--size", multiple=True, metavar="NAME=N", help="Sizes that the code needs."),
    click.option("--layer", metavar="WHICH", help="Part of a stacked state that is the query."),
    click.option("--padding", type=click.Choice(["left", "right"])),
    click.option("--all-masked", type=click.Choice(["zeros", "any"])),
    click.option("--random", is_flag=True, help="Something is drawn in eval mode too."),
    click.option("--reweighted", is_flag=True, help="Weights change after the softmax."),
    click.option("--sparse", is_flag=True, help="The code chooses whom a query reads."),
    click.option("--mode", type=click.Choice(["eval", "train"])),
    click.option("--dtype", type=click.Choice(["float16", "bfloat16", "float32", "float64"])),
)
# Option -> statement, where the words differ.
_STATEMENTS = {"axes": "inputs", "kind": "kinds", "value": "values", "size": "sizes"}
_STATEMENTS |= {"paper": "convention"}
_TEXTS = (
    *("score", "scale", "activation", "causal", "window", "paper", "layer", "padding"),
    *("all_masked", "mode", "dtype", "mask"),
)


def contract_options(command: _F) -> _F:
    """Add the options to a command's function."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def statements(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options state, in the form of a contract; ``mask`` besides.

    Parameters
    ----------
    given : mapping
        Values of the options by name.

    Raises
    ------
    InputError
        Something is no statement of a contract.
    """
    from regard.check.declared import pairs, validated

    found: dict[str, Any] = {}
    for name in ("axes", "kind"):
        found[name] = pairs(f"--{name}", given[name])
    for name in ("init", "value", "size"):
        found[name] = pairs(f"--{name}", given[name], literal=True)
    returns = pairs("--returns", given["returns"])
    found["returns"] = [{"name": name, "axes": axes} for name, axes in returns.items()]
    found |= {name: given[name] for name in _TEXTS}
    found |= {name: True for name in ("random", "reweighted", "sparse") if given[name]}
    if given["weights"] is not None:
        found["weights"] = {"output": given["weights"]}
    if given["positions"] is not None:
        found["positions"] = {"yes": True, "no": False}.get(
            given["positions"], given["positions"]
        )
    stated = {
        _STATEMENTS.get(name, name): value
        for name, value in found.items()
        if value is not None and value not in ({}, [])
    }
    # The alignment may be one of results that are guessed later.
    later = {"mask"} if returns else {"mask", "weights"}
    validated({k: v for k, v in stated.items() if k not in later}, "the command line")
    return stated
