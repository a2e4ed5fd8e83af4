"""Blocks of a lesson are found with their lines, their words and their outputs."""

import pytest

from regard.learn.fences import fences, pairs

TEXT = """# A

```python within=0.1 figure=map
x = 1
```

```text
1
```

words

````{interactive} drag
```python
no block of the lesson
```
````

```python
y
```

between

```text
not its output
```
"""


def test_a_block_knows_its_lines_and_its_words():
    first = fences(TEXT)[0]
    assert (first.first, first.last) == (2, 4)
    assert first.options == {"within": "0.1", "figure": "map"}
    assert first.body == "x = 1\n"


def test_a_longer_fence_holds_shorter_ones():
    assert [fence.language for fence in fences(TEXT)] == [
        "python",
        "text",
        "{interactive}",
        "python",
        "text",
    ]
    assert fences(TEXT)[2].options == {"": "drag"}


def test_an_output_follows_its_block_after_blank_lines_alone():
    (_, output), (_, none) = pairs(TEXT)
    assert output.body == "1\n"
    assert none is None


def test_a_block_without_an_end_is_refused_by_its_line():
    with pytest.raises(ValueError, match="line 3 has no end"):
        fences("a\n\n```python\nx\n")


def test_a_word_that_no_block_knows_is_refused():
    with pytest.raises(ValueError, match="line 1: 'python widthin=2'"):
        fences("```python widthin=2\n```\n")
