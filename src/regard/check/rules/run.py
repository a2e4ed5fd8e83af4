"""RG9: what kept the check from checking, said plainly. Exit code 2."""

from regard.check.rules.base import Example, Rule, cross

__all__ = ["RULES"]

_GOOD = '''\
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    return weights @ keys, weights
'''
_SHOW = "print(tuple(attend(torch.ones(1, 2, 5), torch.ones(1, 3, 5))[0].shape))"
_FINE = Example(_GOOD, contract=cross(), show=_SHOW, prints="(1, 2, 5)")


def _could_not_load() -> Rule:
    return Rule(
        code="RG901",
        name="could-not-load",
        level="error",
        title="The target could not be imported",
        equation="import file; getattr(file, name)",
        what="The file has a syntax error, raises while it is imported, needs a library that "
        "is not installed, takes too long, or has nothing of the name. Nothing was checked.",
        hides="Nothing is hidden: the reason is quoted.",
        recipe="Run the file with Python first. Move work that is done at import under `if "
        '__name__ == "__main__":`.',
        not_a_bug="It says nothing about the attention.",
        bad=Example(
            "import a_library_that_is_not_installed\n\n\n"
            + _GOOD.removeprefix("import torch\n\n\n"),
            contract=cross(),
            prints="ModuleNotFoundError: No module named 'a_library_that_is_not_installed'",
        ),
        good=_FINE,
    )


def _could_not_build_inputs() -> Rule:
    return Rule(
        code="RG902",
        name="could-not-build-inputs",
        level="error",
        title="No arguments could be made that the target accepts",
        equation="there are arguments for which f(*arguments) returns",
        what="Names, annotations, docstrings and comments do not tell what the arguments are, "
        "or the target refuses everything that was tried. Nothing was checked.",
        hides="Nothing is hidden: what was tried is listed.",
        recipe='Declare the inputs in a contract, as `"query": "batch T_dec d_s"`, or check '
        "the function that takes the tensors.",
        not_a_bug="It says nothing about the attention.",
        bad=Example(
            """\
import torch


def attend(batch):
    source, target = batch.source.states, batch.target.states
    weights = torch.softmax(target @ source.transpose(1, 2), dim=-1)
    return weights @ source, weights
""",
            show="""\
try:
    attend(torch.ones(1, 3, 5))
except AttributeError as error:
    print(type(error).__name__)""",
            prints="AttributeError",
        ),
        good=_FINE,
    )


def _not_repeatable() -> Rule:
    return Rule(
        code="RG903",
        name="not-repeatable",
        level="error",
        title="Two equal calls differ by chance, so no relation can be tested",
        equation="f(x) = f(x), with the same seed",
        what="The target draws random numbers that no seed reaches: a generator of its own, "
        "the clock, the operating system. A difference between two runs then proves nothing.",
        hides="Nothing is hidden: the two results are compared before anything else.",
        recipe="Pass the generator in, or take the noise out of the path that is checked.",
        not_a_bug="Sampling on purpose. Check the deterministic part by itself.",
        bad=Example(
            _GOOD.replace("import torch\n", "import numpy as np\nimport torch\n").replace(
                "    weights = ",
                "    noise = float(np.random.default_rng().normal())\n"
                "    query = query + noise\n"
                "    weights = ",
            ),
            contract=cross(),
            show="""\
query, keys = torch.ones(1, 2, 5), torch.arange(15.0).view(1, 3, 5) / 15
print(torch.equal(attend(query, keys)[0], attend(query, keys)[0]))""",
            prints="False",
        ),
        good=_FINE,
    )


def _nothing_checked() -> Rule:
    return Rule(
        code="RG904",
        name="nothing-checked",
        level="error",
        title="The target ran, and no relation applied to it",
        equation="the number of relations that ran is > 0",
        what="No weights, no context and no mask were found: the target is no attention, or "
        "what it returns was not recognised. Silence would look like a pass, so it is none.",
        hides="Nothing is hidden: the relations are listed with the reason why each did not "
        "apply.",
        recipe="Name the function that attends, or declare its `returns`.",
        not_a_bug="Where the target is no attention.",
        bad=Example(
            "def double(text):\n    return text + text\n",
            entry="double",
            show='print(double("ab"))',
            prints="abab",
        ),
        good=_FINE,
    )


RULES = (_could_not_load(), _could_not_build_inputs(), _not_repeatable(), _nothing_checked())
