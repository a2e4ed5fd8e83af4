"""One decoder step as Bahdanau et al. and as Luong et al. take it."""

from regard.learn.diagrams.drawing import Drawing

__all__ = ["step_order"]


def step_order() -> str:
    """Draw both steps side by side: which state asks, and when."""
    drawing = Drawing(
        660,
        330,
        title="A step of Bahdanau's decoder and one of Luong's",
        told="Left: the state before the step, s t minus 1, is the query; the context it finds "
        "goes into the recurrent cell, which makes s t. Right: the recurrent cell first makes "
        "s t from s t minus 1; s t is the query, and the context it finds meets s t after the "
        "cell.",
    )
    drawing.line((330, 16), (330, 314), dashed=True)
    _bahdanau(drawing, 20)
    _luong(drawing, 350)
    return drawing.svg()


def _bahdanau(drawing: Drawing, x: float) -> None:
    drawing.words(x, 32, "Bahdanau: look, then step", bold=True)
    drawing.box(x, 230, 70, 44, "s_{t-1}", color="orange")
    drawing.arrow((x + 35, 230), (x + 35, 157), color="orange", width=2.4)
    drawing.words(x + 43, 200, "query", color="orange", size=13)
    drawing.box(x, 110, 70, 44, "attend", color="blue")
    drawing.words(x + 35, 74, "h_1 ... h_{T}", anchor="middle", color="quiet")
    drawing.arrow((x + 35, 82), (x + 35, 107))
    drawing.arrow((x + 70, 132), (x + 147, 132), (x + 147, 227), color="blue", width=2.4)
    drawing.words(x + 90, 122, "c_t", color="blue")
    drawing.arrow((x + 70, 252), (x + 107, 252))
    drawing.box(x + 110, 230, 74, 44, "RNN")
    drawing.words(x + 147, 312, "y_{t-1}", anchor="middle", color="quiet")
    drawing.arrow((x + 147, 298), (x + 147, 277))
    drawing.arrow((x + 184, 252), (x + 217, 252))
    drawing.box(x + 220, 230, 70, 44, "s_t")


def _luong(drawing: Drawing, x: float) -> None:
    drawing.words(x, 32, "Luong: step, then look", bold=True)
    drawing.box(x, 230, 60, 44, "s_{t-1}")
    drawing.arrow((x + 60, 252), (x + 87, 252))
    drawing.box(x + 90, 230, 64, 44, "RNN")
    drawing.words(x + 122, 312, "y_{t-1}", anchor="middle", color="quiet")
    drawing.arrow((x + 122, 298), (x + 122, 277))
    drawing.arrow((x + 154, 252), (x + 181, 252))
    drawing.box(x + 184, 230, 60, 44, "s_t", color="orange")
    drawing.arrow((x + 214, 230), (x + 214, 180), (x + 90, 180), (x + 90, 157), color="orange",
                  width=2.4)  # fmt: skip
    drawing.words(x + 120, 172, "query", color="orange", size=13)
    drawing.box(x + 55, 110, 70, 44, "attend", color="blue")
    drawing.words(x + 90, 74, "h_1 ... h_{T}", anchor="middle", color="quiet")
    drawing.arrow((x + 90, 82), (x + 90, 107))
    drawing.arrow((x + 125, 132), (x + 195, 132), color="blue", width=2.4)
    drawing.words(x + 150, 122, "c_t", color="blue")
    drawing.box(x + 198, 110, 92, 44, "tanh(W_c[c;s])")
    drawing.arrow((x + 230, 230), (x + 230, 157))
    drawing.words(
        x + 244, 84, "s\u0303_t to the output", anchor="middle", color="quiet", size=13
    )
    drawing.arrow((x + 244, 110), (x + 244, 91))
