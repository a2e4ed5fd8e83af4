"""Models of a reproduction, kept: trained once, told from others, damage noticed."""

import pytest
import torch
from torch import nn

from regard.audit.classifier import ClassifierConfig
from regard.audit.classifier_training import ClassifierTraining
from regard.audit.from_classifier import ClassifierData
from regard.audit.planted import planted_inputs
from regard.audit.reproduce.kept import Models, classifier
from regard.errors import InputError


class _Trainer:
    """Counts how often it trains."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        torch.manual_seed(self.times)
        return nn.Linear(3, 5)


def _kept(folder, trainer, key="a"):
    return Models(folder).get("model", key, train=trainer, untrained=lambda: nn.Linear(3, 5))


def test_a_model_is_trained_once_and_comes_back_as_it_was(tmp_path):
    trainer = _Trainer()
    folder = tmp_path / "new" / "folder"
    first, second = _kept(folder, trainer), _kept(folder, trainer)
    assert trainer.times == 1
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)
    assert not second.training


def test_other_settings_are_another_model_beside_it(tmp_path):
    trainer = _Trainer()
    _kept(tmp_path, trainer)
    _kept(tmp_path, trainer, key="b")
    _kept(tmp_path, trainer)
    assert trainer.times == 2


def test_without_a_folder_nothing_is_kept():
    trainer = _Trainer()
    _kept(None, trainer)
    _kept(None, trainer)
    assert trainer.times == 2


def test_a_damaged_file_and_a_folder_that_cannot_be_made_are_refused(tmp_path):
    _kept(tmp_path, _Trainer())
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged or cut short"):
        _kept(tmp_path, _Trainer())
    with pytest.raises(InputError, match="cannot be written"):
        _kept(path / "below a file", _Trainer())


def test_a_classifier_answers_as_before_and_equal_weights_stay_equal(tmp_path):
    data = ClassifierData(*(planted_inputs(23, seed=k) for k in range(3)))
    config = ClassifierConfig(data.symbols, encoder="average", d_in=7, d_hidden=5)
    training = ClassifierTraining(epochs=1)
    models = Models(tmp_path)
    for uniform in (False, True):
        first, second = (
            classifier(models, data, config, training, seed=2, uniform=uniform)
            for _ in range(2)
        )
        assert first.accuracy == second.accuracy
        assert first.case.name == second.case.name
        assert (first.case.predict(data.test) == second.case.predict(data.test)).all()
        (row,) = second.case.weights(data.test[:1])
        assert uniform == bool((row == row[0]).all())
    assert len(list(tmp_path.iterdir())) == models.found == 2
    assert models.seconds > 0
