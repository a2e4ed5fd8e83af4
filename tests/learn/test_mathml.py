"""Equations become MathML: all that the project has, and nothing that is not known."""

import inspect
import re
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest

import regard
from regard.learn.catalog import lessons
from regard.learn.mathml import mathml

SOURCE = Path(inspect.getfile(regard)).parent
_DIRECTIVE = re.compile(r"^( *)\.\. math::(.*)\n((?:\1 +.*\n|\n(?=\1 ))*)", re.MULTILINE)


def _of_docstrings():
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield from (m[2] + "\n" + textwrap.dedent(m[3]) for m in _DIRECTIVE.finditer(text))
        yield from re.findall(r":math:`([^`]*)`", text)


def _of_lessons():
    for lesson in lessons():
        prose = re.sub(r"^```.*?^```$", "", lesson.text, flags=re.DOTALL | re.MULTILINE)
        yield from re.findall(r"\$\$\n(.*?)\n\$\$", prose, re.DOTALL)
        yield from re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", prose)


def test_every_equation_of_docstrings_and_lessons_is_read():
    equations = [*_of_docstrings(), *_of_lessons()]
    assert len(equations) > 100
    for tex in equations:
        tree = ElementTree.fromstring(mathml(tex, display=True))
        assert "\\" not in "".join(tree.itertext())


def _shape(tex):
    def walk(node):
        own = node.tag.removeprefix("m")
        inner = [walk(child) for child in node if child.tag != "mspace"]
        return f"{own}({' '.join(inner)})" if inner else (node.text or "")

    return walk(ElementTree.fromstring(mathml(tex))[0])


@pytest.mark.parametrize(
    ("tex", "shape"),
    [
        ("h_i", "row(sub(h i))"),
        ("s_{t-1}", "row(sub(s row(t − 1)))"),
        (r"v_a^\top", "row(subsup(v a ⊤))"),
        ("a'", "row(row(a ′))"),
        (r"\frac{a}{b}", "row(frac(row(a) row(b)))"),
        (r"\sqrt{d_k}", "row(sqrt(row(sub(d k))))"),
        (r"\sum_i x", "row(under(∑ i) x)"),
        (r"\tilde h_t", "row(sub(over(h ~) t))"),
        (r"\mathrm{softmax}(e)", "row(softmax ( e ))"),
        (r"a &= b \\ c &= d", "table(tr(td(row(a)) td(row(= b))) tr(td(row(c)) td(row(= d))))"),
    ],
)
def test_an_equation_has_its_structure(tex, shape):
    assert _shape(tex) == shape


def test_spaces_of_words_are_kept_and_of_symbols_are_not():
    assert "over\u00a0all\u00a0" in mathml(r"\text{over all } i")
    assert mathml("a  b") == mathml("a b").replace('alttext="a b"', 'alttext="a b"')


@pytest.mark.parametrize("tex", [r"\unknown", "{a", "a}", "x_", r"\left( a", r"\frac{a}"])
def test_what_is_not_known_or_not_whole_is_refused_with_the_equation(tex):
    with pytest.raises(ValueError, match=r"mathml\(\)"):
        mathml(tex)


def test_the_words_of_a_page_cannot_break_out_of_an_equation():
    assert "<script" not in mathml(r"a < \text{<script>}")
