"""A line chart of shares against a number, for what a lesson measures itself."""

from collections.abc import Mapping, Sequence

from regard.learn.diagrams.drawing import Drawing

__all__ = ["line_chart"]

_COLORS = ("orange", "blue", "ink")
_LEFT, _TOP, _WIDTH, _HEIGHT = 64.0, 30.0, 420.0, 200.0


def line_chart(
    lines: Mapping[str, Mapping[int, float]],
    *,
    title: str,
    across: str,
    up: str,
    mark: int | None = None,
    marked: str = "",
) -> str:
    """Draw shares from 0 to 1 against whole numbers.

    Parameters
    ----------
    lines : mapping of mappings
        By the name of each line, up to three: the share at each number.
    title, across, up : str
        The picture's name and those of its axes.
    mark : int, optional
        A number where a dashed line stands.
    marked : str
        What that line is called.

    Returns
    -------
    svg : str
        Each line is named at its end, so that colour only repeats it.

    Raises
    ------
    ValueError
        There is no line, or more than three.

    Examples
    --------
    >>> picture = line_chart({"dot": {5: 1.0, 10: 0.9}}, title="t", across="length", up="right")
    >>> picture.startswith("<svg")
    True
    """
    if not 1 <= len(lines) <= len(_COLORS):
        raise ValueError(f"line_chart(): 1 to {len(_COLORS)} lines, got {len(lines)}")
    numbers = sorted({number for line in lines.values() for number in line})
    told = " ".join(
        f"{name}: " + ", ".join(f"{line[n]:.0%} at {n}" for n in sorted(line)) + "."
        for name, line in lines.items()
    )
    drawing = Drawing(660, 290, title=title, told=told)
    _axes(drawing, numbers, across, up)
    if mark is not None:
        x = _x(mark, numbers)
        drawing.line((x, _TOP), (x, _TOP + _HEIGHT), dashed=True)
        drawing.words(x + 5, _TOP + _HEIGHT - 8, marked, size=12, color="quiet")
    ends = []
    for (name, line), color in zip(lines.items(), _COLORS, strict=False):
        points = [(_x(n, numbers), _y(line[n])) for n in sorted(line)]
        drawing.line(*points, color=color)
        for x, y in points:
            drawing.dot(x, y, color)
        ends.append((points[-1][1], name, color))
    above = -100.0
    for y, name, color in sorted(ends):
        above = max(y + 5, above + 18)  # names of lines that end together stand one by one
        drawing.words(_LEFT + _WIDTH + 12, above, name, color=color)
    return drawing.svg()


def _axes(drawing: Drawing, numbers: Sequence[int], across: str, up: str) -> None:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        drawing.line((_LEFT, _y(share)), (_LEFT + _WIDTH, _y(share)), color="grid")
        drawing.words(_LEFT - 8, _y(share) + 4, f"{share:.0%}", anchor="end", size=12,
                      color="quiet")  # fmt: skip
    for number in numbers:
        drawing.words(_x(number, numbers), _TOP + _HEIGHT + 20, str(number), anchor="middle",
                      size=12, color="quiet")  # fmt: skip
    drawing.words(_LEFT, 16, up, size=13, color="quiet")
    drawing.words(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 44, across, anchor="middle", size=13,
                  color="quiet")  # fmt: skip


def _x(number: int, numbers: Sequence[int]) -> float:
    span = max(numbers[-1] - numbers[0], 1)
    return _LEFT + 10 + (_WIDTH - 20) * (number - numbers[0]) / span


def _y(share: float) -> float:
    return _TOP + _HEIGHT * (1 - share)
