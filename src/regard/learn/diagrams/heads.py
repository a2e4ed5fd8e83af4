"""Multi-head attention: cut, attend side by side, join."""

from regard.learn.diagrams.drawing import Drawing

__all__ = ["multi_head"]

_HEADS = 3


def multi_head() -> str:
    """Draw three heads with the shape at every stage."""
    drawing = Drawing(
        660,
        370,
        title="Multi-head attention with three heads",
        told="Query, key and value are each multiplied by a matrix, then cut along the "
        "features into three slices. Each head attends with its own slices. The three "
        "contexts are joined along the features and multiplied by W o.",
    )
    for place, name in enumerate(("query", "key", "value")):
        x = 30 + 120 * place
        drawing.words(x + 45, 355, name, anchor="middle", color="quiet")
        drawing.arrow((x + 45, 338), (x + 45, 319))
        drawing.box(x, 280, 90, 36, f"W_{'qkv'[place]}")
        drawing.arrow((x + 45, 280), (x + 45, 255))
    drawing.words(395, 345, "(T, d_s), (T, d_h), (T, d_v)", color="quiet", size=13)
    drawing.words(395, 303, "(T, heads · d_{head})", color="quiet", size=13)
    drawing.box(30, 222, 330, 30, "split_heads: cut the features", color="orange")
    drawing.words(395, 242, "(heads, T, d_{head})", color="quiet", size=13)
    for head in range(_HEADS):
        x = 30 + 120 * head
        drawing.arrow((x + 45, 222), (x + 45, 195))
        drawing.box(x, 152, 90, 40, f"attend^{{{head + 1}}}", color="blue")
        drawing.arrow((x + 45, 152), (x + 45, 127), color="blue")
    drawing.words(395, 177, "weights (heads, T_{dec}, T_{enc})", color="blue", size=13)
    drawing.box(30, 94, 330, 30, "merge_heads: join the features", color="orange")
    drawing.words(395, 114, "(T_{dec}, heads · d_{head})", color="quiet", size=13)
    drawing.arrow((195, 94), (195, 71))
    drawing.box(150, 32, 90, 36, "W_o")
    drawing.arrow((195, 32), (195, 8))
    drawing.words(395, 56, "(T_{dec}, d_{out})", color="quiet", size=13)
    return drawing.svg()
