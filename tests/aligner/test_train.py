import json
import signal

import pytest

from regard.aligner.bitext import Bitext, Words
from regard.aligner.corpus import SentencePairs
from regard.aligner.model import Aligner
from regard.aligner.settings import AlignerSettings
from regard.aligner.train import train_aligner
from regard.aligner.trained import TrainedAligner
from regard.alignment.links import NO_WORD
from regard.alignment.score import score_alignments
from regard.errors import InputError
from regard.seq2seq.clock import Clock
from regard.seq2seq.events import InterruptedRun

QUICK = AlignerSettings(epochs=5)


def aer_of(aligner, example, method="agreeing"):
    pairs, gold = example
    return score_alignments(gold, aligner.links(pairs, method)).aer


@pytest.fixture(scope="module")
def trained(example, tmp_path_factory):
    directory = tmp_path_factory.mktemp("runs") / "aligner"
    pairs, _ = example
    return directory, train_aligner(pairs, AlignerSettings(), directory=directory)


def test_sixty_sentences_with_swapped_adjectives_are_nearly_all_aligned(trained, example):
    _, aligner = trained
    assert aer_of(aligner, example) < 0.1


def test_links_from_a_directory_are_those_of_the_aligner_in_memory(trained, example):
    directory, aligner = trained
    pairs, _ = example
    assert TrainedAligner.load(directory).links(pairs) == aligner.links(pairs)
    one = SentencePairs(pairs.source[11:12], pairs.target[11:12])
    assert aligner.links(one) == aligner.links(pairs)[11:12]


def test_new_text_is_aligned_and_new_words_by_spelling_and_place(trained):
    _, aligner = trained
    new = SentencePairs(
        [["The", "black", "cat", "sees", "Constantinople", "."], []],
        [["le", "chat", "noir", "voit", "Constantinople", "."], ["rien"]],
    )
    links = aligner.links(new)
    assert links == [{(0, 0), (1, 2), (2, 1), (3, 3), (4, 4), (5, 5)}, frozenset()]


def test_records_are_distributions_over_the_words_and_none(trained, example):
    _, aligner = trained
    pairs, gold = example
    forward = aligner.records(pairs)
    backward = aligner.records(pairs, direction="backward")
    assert (len(forward), forward[4].name) == (len(pairs), "5")
    assert forward[4].target == pairs.target[4]
    assert forward[4].source == (*pairs.source[4], NO_WORD)
    assert backward[4].source == (*pairs.target[4], NO_WORD)
    # Of either direction the largest belief of a word is nearly always right.
    size = len(pairs.source[4])
    links = {link for link in forward[4].alignment(layer=0, head=0).links() if link[0] < size}
    assert len(links & gold[4].sure) >= 0.8 * len(links)


def test_agreement_and_spelling_and_the_chain_can_be_left_out(example):
    pairs, _ = example
    whole, alone = (
        train_aligner(pairs, AlignerSettings(epochs=5, agree=agree)) for agree in (True, False)
    )
    assert whole.learned.log != alone.learned.log
    numbers = SentencePairs([["1900"], ["1900", "x"]] * 3, [["1900"], ["y", "1900"]] * 3)
    spelled = Aligner(Bitext(numbers, Words(), Words()), QUICK)
    other = Aligner(Bitext(numbers, Words(), Words()), AlignerSettings(spelling=0.0))
    assert spelled.forward.lexicon.table[1:].max() > other.forward.lexicon.table[1:].max()


def test_a_run_that_was_stopped_goes_on_to_the_same_aligner(example, tmp_path):
    pairs, _ = example
    whole = tmp_path / "whole"
    train_aligner(pairs, QUICK, directory=whole)

    def stop(passed):
        if passed.passes == 3 and not passed.whole:
            raise InterruptedRun(passed.passes, signal.SIGINT)

    cut = tmp_path / "cut"
    with pytest.raises(InterruptedRun):
        train_aligner(pairs, QUICK, directory=cut, on_progress=stop)
    assert len(TrainedAligner.load(cut).learned.log) == 3
    train_aligner(pairs, QUICK, directory=cut, resume=True)
    one, other = (TrainedAligner.load(place).learned for place in (whole, cut))
    assert [value for _, value in one.log] == [value for _, value in other.log]
    for name, value in one.tensors.items():
        assert value.equal(other.tensors[name]), name


def test_a_signal_ends_a_run_between_batches(example, tmp_path):
    pairs, _ = example

    def send(passed):
        if passed.whole:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(InterruptedRun) as stopped:
        train_aligner(pairs, QUICK, directory=tmp_path / "run", on_progress=send)
    assert (stopped.value.step, stopped.value.signal) == (1, signal.SIGTERM)
    assert len(TrainedAligner.load(tmp_path / "run").learned.log) == 1


def test_a_finished_run_is_not_run_again(trained, example):
    directory, _ = trained
    before = (directory / "model.safetensors").read_bytes()
    again = train_aligner(example[0], AlignerSettings(), directory=directory, resume=True)
    assert len(again.learned.log) == AlignerSettings().epochs
    assert (directory / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("settings", "turned", "message"),
    [
        (AlignerSettings(seed=1), False, "other settings"),
        (AlignerSettings(), True, "another corpus"),
    ],
)
def test_a_run_is_taken_up_only_as_it_began(trained, example, settings, turned, message):
    pairs, _ = example
    given = SentencePairs(pairs.target, pairs.source) if turned else pairs
    with pytest.raises(InputError, match=message):
        train_aligner(given, settings, directory=trained[0], resume=True)


def test_a_time_budget_ends_with_a_chain(example):
    ticks = iter(range(10**6))
    clock = Clock(read=lambda: next(ticks))  # a second each time it is looked at
    settings = AlignerSettings(time_budget=20.0)
    learned = train_aligner(example[0], settings, clock=clock).learned
    assert learned.chain
    assert learned.done
    assert 2 <= len(learned.log) <= 20


def test_the_seed_decides_the_order_of_batches_and_nothing_else(example, monkeypatch):
    monkeypatch.setattr("regard.aligner.bitext._CELLS", 2000)
    pairs, _ = example
    first, again, other = (
        train_aligner(pairs, AlignerSettings(epochs=3, seed=seed)).learned for seed in (3, 3, 4)
    )
    values = [[value for _, value in run.log] for run in (first, again, other)]
    assert values[0] == values[1] != values[2]
    assert values[0] == pytest.approx(values[2], rel=0.02)


def test_text_without_words_is_refused():
    with pytest.raises(InputError, match="no sentence pair has words on both sides"):
        train_aligner(SentencePairs([["a"], []], [[], ["b"]]), QUICK)


@pytest.mark.parametrize("name", ["aligner.json", "words.json", "model.safetensors"])
def test_a_damaged_directory_is_named(trained, example, tmp_path, name):
    for file in trained[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=name):
        TrainedAligner.load(tmp_path)


def test_files_of_two_runs_are_told_apart(trained, tmp_path):
    for file in trained[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    form = json.loads((tmp_path / "aligner.json").read_text())
    form["settings"]["spelling"] = 2.0
    (tmp_path / "aligner.json").write_text(json.dumps(form))
    with pytest.raises(InputError, match="files of two runs"):
        TrainedAligner.load(tmp_path)


@pytest.mark.parametrize(
    "wrong", [{"epochs": 1}, {"sparsity": 0.0}, {"spelling": -1.0}, {"empty": 1.0}]
)
def test_settings_outside_their_range_are_refused(wrong):
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` is refused"):
        AlignerSettings(**wrong)
