"""The encoder-decoder, without attention and with it."""

from regard.learn.diagrams.drawing import Drawing

__all__ = ["encoder_decoder", "fixed_vector"]

_SOURCE = ("the", "black", "cat", "sleeps")
_STATES = len(_SOURCE)


def fixed_vector() -> str:
    """Draw the encoder-decoder of 2014: all that the decoder gets is one vector."""
    drawing = Drawing(
        660,
        190,
        title="An encoder-decoder without attention",
        told="Four encoder states in a row read four words. One arrow leads from the last of "
        "them, through a single vector c, to a row of three decoder states.",
    )
    for place in range(_STATES):
        x = 20 + 72 * place
        drawing.box(x, 60, 52, 40, f"h_{place + 1}")
        drawing.words(x + 26, 146, _SOURCE[place], anchor="middle", color="quiet")
        drawing.arrow((x + 26, 130), (x + 26, 103))
        if place:
            drawing.arrow((x - 20, 80), (x - 3, 80))
    drawing.arrow((288, 80), (333, 80), color="orange", width=2.4)
    drawing.box(336, 56, 56, 48, "c", color="orange")
    drawing.words(364, 40, "one vector", anchor="middle", color="orange")
    drawing.words(364, 146, "whatever the length", anchor="middle", color="orange")
    drawing.arrow((392, 80), (437, 80), color="orange", width=2.4)
    for place in range(3):
        x = 440 + 72 * place
        drawing.box(x, 60, 52, 40, f"s_{place + 1}")
        drawing.arrow((x + 26, 60), (x + 26, 33))
        drawing.words(x + 26, 24, f"y_{place + 1}", anchor="middle", color="quiet")
        if place:
            drawing.arrow((x - 20, 80), (x - 3, 80))
    return drawing.svg()


def encoder_decoder() -> str:
    """Draw one step of a decoder that looks at all encoder states."""
    drawing = Drawing(
        660,
        300,
        title="An encoder-decoder with attention, at one decoder step",
        told="Each of four encoder states is scored against the decoder's state. A softmax "
        "turns scores into weights, drawn as bars that sum to one, and the sum of the states "
        "times their weights is the context, which the decoder's step uses.",
    )
    weights = (0.1, 0.2, 0.6, 0.1)
    for place in range(_STATES):
        x = 40 + 90 * place
        drawing.box(x, 200, 60, 40, f"h_{place + 1}")
        drawing.words(x + 30, 282, _SOURCE[place], anchor="middle", color="quiet")
        drawing.arrow((x + 30, 266), (x + 30, 243))
        if place:
            drawing.arrow((x - 30, 220), (x - 3, 220))
        bar = 70 * weights[place]
        drawing.box(x + 14, 150 - bar, 32, bar, color="blue")
        drawing.arrow((x + 30, 200), (x + 30, 153), color="blue")
        drawing.words(x + 52, 172, f"a_{{t,{place + 1}}}", color="blue", size=13)
    drawing.words(40, 40, "weights: softmax of the scores", color="blue")
    drawing.words(40, 60, "never negative, sum 1", color="quiet", size=13)
    drawing.arrow((380, 130), (447, 130), color="blue", width=2.4)
    drawing.box(450, 108, 84, 44, "context c_t", color="blue")
    drawing.box(450, 200, 84, 44, "query")
    drawing.words(492, 270, "a decoder state", anchor="middle", color="quiet", size=13)
    drawing.arrow((450, 222), (373, 222), color="orange")
    drawing.words(410, 212, "score", anchor="middle", color="orange", size=13)
    drawing.arrow((534, 130), (577, 130))
    drawing.box(580, 108, 60, 44, "y_t")
    return drawing.svg()
