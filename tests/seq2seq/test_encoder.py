import pytest
import torch

from regard.errors import ShapeError
from regard.seq2seq.encoder import Encoder
from regard.seq2seq.unpacked import run_unpacked


def _encoder(*, bidirectional: bool = True, layers: int = 1, cell: str = "gru") -> Encoder:
    torch.manual_seed(3)
    encoder = Encoder(17, 5, 7, 11, bidirectional=bidirectional, layers=layers, cell=cell)
    return encoder.double().eval()


EVERY = [
    pytest.mark.parametrize("bidirectional", [True, False]),
    pytest.mark.parametrize("layers", [1, 2]),
    pytest.mark.parametrize("cell", ["gru", "lstm"]),
]


def every(test):
    """Run a test with encoders of every kind."""
    for mark in EVERY:
        test = mark(test)
    return test


@every
def test_a_padded_sequence_has_the_states_it_has_alone(bidirectional, layers, cell):
    encoder = _encoder(bidirectional=bidirectional, layers=layers, cell=cell)
    source = torch.randint(4, 17, (3, 13))
    lengths = torch.tensor([13, 2, 5])
    together = encoder(source, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = encoder(source[row : row + 1, :length])
        torch.testing.assert_close(together.states[row, :length], alone.states[0])
        torch.testing.assert_close(together.initial[row], alone.initial[0])
        assert together.states[row, length:].abs().sum() == 0


@every
def test_tensors_alone_give_what_packed_sequences_give(bidirectional, layers, cell):
    encoder = _encoder(bidirectional=bidirectional, layers=layers, cell=cell)
    source, lengths = torch.randint(4, 17, (3, 13)), torch.tensor([11, 2, 5])
    packed = encoder(source, lengths)
    states, ends = run_unpacked(encoder.rnn, encoder.embedding(source), lengths)
    torch.testing.assert_close(states, packed.states)
    initial = torch.tanh(encoder.bridge(torch.cat(tuple(ends), -1)))
    torch.testing.assert_close(initial, packed.initial)


def test_without_a_bridge_there_is_no_first_decoder_state():
    encoded = Encoder(17, 5, 7, None)(torch.full((2, 13), 5))
    assert encoded.initial is None


def test_what_stands_behind_a_sequence_changes_nothing():
    encoder = _encoder()
    source, lengths = torch.randint(4, 17, (3, 13)), torch.tensor([11, 2, 5])
    other = source.clone()
    other[0, 11:], other[1, 2:], other[2, 5:] = 4, 5, 6
    assert not torch.equal(source, other)
    for one, two in zip(encoder(source, lengths), encoder(other, lengths), strict=True):
        assert torch.equal(one, two)


def test_all_states_keep_the_length_that_came_in():
    assert _encoder()(torch.full((2, 13), 5), torch.tensor([3, 5])).states.shape == (2, 13, 14)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 2])
def test_the_first_decoder_state_reads_the_last_state_of_each_direction(layers, cell):
    encoder = _encoder(layers=layers, cell=cell)
    encoded = encoder(torch.randint(4, 17, (3, 13)), torch.tensor([13, 2, 5]))
    ends = torch.stack([encoded.states[0, 12], encoded.states[1, 1], encoded.states[2, 4]])
    both = torch.cat([ends[:, :7], encoded.states[:, 0, 7:]], dim=-1)
    wanted = torch.tanh(both @ encoder.bridge.weight.T + encoder.bridge.bias)
    torch.testing.assert_close(encoded.initial, wanted)


def test_the_first_decoder_state_sees_both_ends_of_the_source():
    encoder = _encoder()
    source = torch.tensor([[4, 5, 6, 7, 8]])
    before = encoder(source).initial
    for position in (0, -1):
        other = source.clone()
        other[0, position] = 9
        assert not torch.allclose(encoder(other).initial, before)
    assert before.abs().max() <= 1


@pytest.mark.parametrize("lengths", [[0, 5], [5, 14]])
def test_a_length_outside_the_sequence_is_refused(lengths):
    with pytest.raises(ShapeError, match="from 1 to T_enc = 13"):
        _encoder()(torch.full((2, 13), 5), torch.tensor(lengths))


def test_lengths_of_another_batch_are_refused():
    with pytest.raises(ShapeError, match="batch"):
        _encoder()(torch.full((2, 13), 5), torch.tensor([3, 5, 7]))
