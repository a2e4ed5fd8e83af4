"""What to change after a crash: the name of a size, or the form of a mask.

A crash's message holds the numbers that did not meet. A variable that has one of them, or is
part of it, may get a name that has the other, unless that contradicts the author's words.
"""

import re
from collections.abc import Iterator, Mapping

from regard.check.roles.cast import Part
from regard.check.roles.reading import Reading
from regard.check.roles.sizing import named
from regard.check.roles.trial import Trial, coinciding
from regard.check.sizes import Sizes, names_in
from regard.check.subject import Crash

__all__ = ["Moves"]

_TIMES = ("T_dec", "T_enc", "T_mem", "n_features", "kv_heads")
_FORM_TROUBLE = re.compile(
    r"bool|byte|dtype|boolean|uint8|\bint\b|float|subtract|bitwise|mask|long|numpy\.",
    re.IGNORECASE,
)
_NO_SPLIT = re.compile(
    r"reshape|view size|invalid for input|divisib|equal division|even|multiple|unflatten|"
    r"split_with_sizes|into shape|chunk|assert",
    re.IGNORECASE,
)


class Moves:
    """Suggests what to try after a crash.

    Parameters
    ----------
    reading : Reading
    parts : tuple of Part
    forms : mapping of str to tuple of str
        Forms of every mask, the likeliest first.
    join : str
        ``"maybe"``: queries and keys may be put on one axis ``T``.
    """

    def __init__(
        self,
        reading: Reading,
        parts: tuple[Part, ...],
        forms: Mapping[str, tuple[str, ...]],
        join: str,
    ) -> None:
        self.reading, self.parts, self.forms, self.join = reading, parts, forms, join

    def after(self, trial: Trial) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Other bindings and mask forms that the crash suggests."""
        crash = trial.result
        assert isinstance(crash, Crash)
        names, forms = dict(trial.names), dict(trial.forms)
        if _FORM_TROUBLE.search(f"{crash.kind} {crash.message}"):
            for mask, options in self.forms.items():
                for form in options:
                    if form != forms[mask]:
                        yield names, {**forms, mask: form}
        sizes = coinciding(trial.which, trial.contract, trial.sizes)
        numbers = list(dict.fromkeys(int(n) for n in re.findall(r"\d+", crash.message)))[:12]
        seen = set()
        for variable, expression in self._bindings(trial, sizes, numbers):
            if (variable, expression) not in seen:
                seen.add((variable, expression))
                yield {**names, **_rebound(names, variable, expression)}, forms

    def _bindings(
        self, trial: Trial, sizes: Sizes, numbers: list[int]
    ) -> Iterator[tuple[str, str]]:
        used = _used(trial, self.parts)
        values = {v: int(sizes.value(trial.names.get(v, v))) for v in used}
        # Names of the data first: a learned array is as wide as what it multiplies.
        known = [n for v in reversed(used) for n in names_in(trial.names.get(v, v))]
        base = [*dict.fromkeys(known), "heads", "d_head"]
        for variable, value in values.items():
            if not self._is_free(variable, trial):
                continue
            for number in numbers:
                if number == value or number < 2:
                    continue
                for wanted in _wanted(number, value, numbers, values, sizes["heads"]):
                    found = named(wanted, sizes, base)
                    fixed = rf"(?<![\w.+-]){wanted}(?![\w.])"
                    if re.search(fixed, self.reading.source) and wanted > 4:
                        found.append(str(wanted))  # a size that the file fixes
                    for expression in found:
                        if self._is_fit(variable, expression, trial):
                            yield variable, expression
        if _NO_SPLIT.search(trial.message):
            for variable, value in values.items():
                is_size = variable.startswith(("f_", "c_", "w_"))
                own = trial.names.get(variable, "")
                if is_size and value % sizes["heads"] and re.fullmatch(r"d_\w+", own):
                    is_value = own == "d_v" and variable in trial.start.firm
                    yield variable, "heads*d_v" if is_value else "heads*d_head"

    def _is_free(self, variable: str, trial: Trial) -> bool:
        """Whether a variable may get another name at all."""
        if variable in ("T_mem", "n_features", "kv_heads"):
            return variable == "n_features"
        if variable in ("T_dec", "T_enc", "T"):
            return variable == "T_dec" and self.join == "maybe"
        own = trial.names.get(variable, "")
        return not any(n == own for v, n in trial.names.items() if v.startswith("c_"))

    def _is_fit(  # noqa: PLR0911 - one a contradiction
        self, variable: str, expression: str, trial: Trial
    ) -> bool:
        """Whether a new name does not contradict what the author's names say."""
        names = names_in(expression)
        is_time = [n in (*_TIMES, "T") for n in names]
        if variable in _TIMES:
            return all(is_time)
        if any(is_time) or {"batch", "height", "width"} & set(names):
            return False
        if not any(n.startswith("d_") for n in names):
            return expression.isdigit() and not variable.startswith("c_")
        own = trial.names.get(variable, "")
        if own in names and expression != own:
            return False
        own = trial.start.names.get(variable, "")
        claimed = {trial.start.names[v] for v in trial.start.firm if v.startswith("c_")}
        if own in claimed:
            return own in names
        if variable in trial.start.firm:
            others = {trial.start.names[v] for v in trial.start.firm if v != variable}
            return not others & set(names)
        return True


def _wanted(
    number: int, value: int, numbers: list[int], values: Mapping[str, int], heads: int
) -> Iterator[int]:
    """Sizes that a variable would need for a crash's number to become another one."""
    multiple = next((k for k in (2, 3, 4) if value * k in numbers), 0)
    if value in numbers:
        yield number
    elif multiple and number % multiple == 0:
        yield number // multiple
    elif value % heads == 0 and value // heads in numbers:
        yield number * heads
    else:
        # A sum with the variable in it can be what did not fit.
        sums = [n for n in numbers if n != number and n > value and n not in values.values()]
        if sums and number - (sums[0] - value) > 1:
            yield number - (sums[0] - value)


def _texts(init: Mapping[str, object]) -> list[str]:
    inner = [w for v in init.values() if isinstance(v, Mapping) for w in v.values()]
    return [v for v in (*init.values(), *inner) if isinstance(v, str)]


def _used(trial: Trial, parts: tuple[Part, ...]) -> list[str]:
    texts = [t for a in trial.choice.axes.values() for t in a.tokens]
    texts += _texts(trial.start.init)
    found = [n for t in texts for n in names_in(t)]
    known = [n for n in dict.fromkeys(found) if n in trial.names or n in _TIMES or n == "T"]
    learned = {n for p in parts if p.role in ("array", "vector") for n in _of(p, trial)}
    # Learned arrays follow the data, data follow the constructor.
    return sorted(known, key=lambda n: (n not in learned, n.startswith("c_"), n in _TIMES))


def _of(part: Part, trial: Trial) -> list[str]:
    return [n for t in trial.choice.axes[part.name].tokens for n in names_in(t)]


def _rebound(names: Mapping[str, str], variable: str, expression: str) -> dict[str, str]:
    """Rename a variable and all that were found to have its size."""
    if variable == "T_dec" and expression == "T_enc":
        others = {v: "T" for v, n in names.items() if n == "T_enc"}
        return {**others, "T_dec": "T", "T_enc": "T"}
    own = names.get(variable, variable)
    if not re.fullmatch(r"\w+", own) or own in _TIMES:
        return {variable: expression}
    longer = expression if re.fullmatch(r"\w+", expression) else f"({expression})"
    return {
        v: expression if n == own else re.sub(rf"\b{own}\b", longer, n)
        for v, n in names.items()
        if re.search(rf"\b{own}\b", n)
    }
