"""One step of every decoder with other weights than its own."""

import pytest
import torch

from regard.errors import ConventionError, ShapeError
from regard.nn.altered import reading
from regard.nn.coverage import CoverageDecoder
from regard.nn.decoders import BahdanauDecoder, LuongDecoder
from regard.nn.input_feeding import InputFeedingDecoder
from regard.nn.local import LocalLuongDecoder
from regard.nn.location import LocationDecoder
from regard.nn.modules import AdditiveAttention
from regard.nn.paper import PaperBahdanauDecoder

SIZES = {"d_in": 3, "d_s": 5, "d_h": 14}
MAKERS = {
    "bahdanau": lambda: BahdanauDecoder(**SIZES, d_attn=11),
    "bahdanau, two layers, lstm": lambda: BahdanauDecoder(
        **SIZES, d_attn=11, layers=2, cell="lstm"
    ),
    "luong": lambda: LuongDecoder(**SIZES, score="general"),
    "input feeding": lambda: InputFeedingDecoder(**SIZES, score="general"),
    "coverage": lambda: CoverageDecoder(**SIZES, d_attn=11),
    "location": lambda: LocationDecoder(**SIZES, d_attn=11, k=2, r=3),
    "local": lambda: LocalLuongDecoder(**SIZES, kind="p", D=2, score="general"),
    "paper": lambda: PaperBahdanauDecoder(**SIZES, d_attn=11, d_maxout=7),
}


def begun(name):
    torch.manual_seed(7)
    decoder = MAKERS[name]().double()
    memory = decoder.prepare(torch.randn(2, 13, 14, dtype=torch.float64), torch.tensor([13, 4]))
    state = decoder.start(torch.randn(2, decoder.d_state, dtype=torch.float64))
    # The second step, so that whatever is carried is there.
    _, state, _ = decoder.step(torch.randn(2, 3, dtype=torch.float64), memory, state)
    return decoder, memory, state, torch.randn(2, 3, dtype=torch.float64)


@pytest.mark.parametrize("name", MAKERS)
def test_its_own_weights_read_what_it_reads(name):
    decoder, memory, state, given = begun(name)
    output, after, own = decoder.step(given, memory, state)
    again = decoder.step(given, reading(memory, own, own), state)
    torch.testing.assert_close(again.output, output)
    torch.testing.assert_close(again.state.hidden, after.hidden)
    torch.testing.assert_close(again.weights, own)


@pytest.mark.parametrize("name", ["bahdanau", "luong", "coverage", "location", "local"])
def test_other_weights_are_read_as_the_equations_say(name):
    decoder, memory, state, given = begun(name)
    own = decoder.step(given, memory, state).weights
    other = torch.softmax(torch.randn(2, 13, dtype=torch.float64), -1)
    output, _, seen = decoder.step(given, reading(memory, own, other), state)
    torch.testing.assert_close(seen, own)  # asked as before
    context = torch.einsum("bi,bid->bd", other, memory.value)
    if name in ("luong", "local"):
        states = decoder.step(given, memory, state).state.hidden
        wanted = torch.tanh(torch.cat([context, states], -1) @ decoder.W_c.T)
        torch.testing.assert_close(output, wanted)
    else:
        torch.testing.assert_close(output[:, 5:], context)


def test_what_does_not_fit_is_refused():
    decoder, memory, state, given = begun("bahdanau")
    own = decoder.step(given, memory, state).weights
    with pytest.raises(ShapeError, match=r"other \(batch=2, T_enc=13\)"):
        reading(memory, own, own[:, :4])
    alone = AdditiveAttention(5, 14, 11).prepare(torch.randn(13, 14))
    with pytest.raises(ConventionError, match="no decoder's"):
        reading(alone, own, own)
