import pytest

from regard.errors import InputError
from regard.seq2seq.bleu import bleu
from regard.seq2seq.checkpoint import Description
from regard.seq2seq.held_out import METRICS, HeldOut
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab

SOURCE, TARGET = Vocab.of(["abcdefg"], kind="chars"), Vocab.of(["k l m"], kind="spaces")
SIZES = ModelConfig(len(SOURCE), len(TARGET), d_in=5, d_hidden=7, d_s=11, d_attn=13)
DESCRIPTION = Description(SIZES, SOURCE, TARGET, 7, 5)
PAIRS = Pairs((("abc", "k l"), ("abc", "m"), ("de", "l l"), ("gfa", "m k l m m")))


@pytest.mark.parametrize("metric", METRICS)
def test_the_metric_comes_first_and_the_others_are_told_too(metric):
    if metric == "bleu":
        pytest.importorskip("sacrebleu")
    held_out = HeldOut(DESCRIPTION, PAIRS, metric)
    model = new_model(SIZES, seed=3).eval()
    scores = held_out(model)
    assert tuple(scores) == held_out.names
    assert held_out.names[0] == metric
    transducer = Transducer(model, DESCRIPTION)
    rates = transducer.error_rates(PAIRS)
    assert scores["symbol_error"] == rates.symbol_error_rate > 0
    assert scores["exact_match"] == rates.exact_match_error > 0
    if metric == "bleu":
        answers = [p.target for p in transducer.predict(["abc", "de", "gfa"])]
        score = bleu(answers, [["k l", "m"], ["l l"], ["m k l m m"]]).score
        assert scores["bleu"] == pytest.approx(1 - score / 100)


def test_another_metric_is_refused():
    with pytest.raises(InputError, match="symbol_error, exact_match, bleu"):
        HeldOut(DESCRIPTION, PAIRS, "accuracy")
