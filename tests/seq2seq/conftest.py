"""Small models and data; every size is another prime."""

import pytest
import torch

from regard.seq2seq.batch import Batch, collate
from regard.seq2seq.description import Description
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def config(attention: str = "bahdanau", **changes: object) -> ModelConfig:
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
    if attention == "dot":
        sizes["d_s"] = 14
    return ModelConfig(17, 19, attention=attention, **(sizes | changes))  # type: ignore[arg-type]


@pytest.fixture(params=["none", "bahdanau", "dot", "general", "concat"])
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    """An untrained model of each kind."""
    return new_model(config(request.param), seed=3).eval()


@pytest.fixture
def batch() -> Batch:
    """Three pairs of different lengths."""
    return collate([([4, 5, 6, 7, 8], [9, 10]), ([11, 12], [13, 14, 15]), ([16], [4])])


@pytest.fixture
def lively():
    """A maker of transducers whose untrained weights are far from uniform."""

    def make(attention: str = "bahdanau", seed: int = 3, **changes: object) -> Transducer:
        source = Vocab.of(["abcdefg"], kind="chars", **changes.pop("source", {}))  # type: ignore[arg-type]
        target = Vocab.of(["K L M N"], kind="spaces")
        sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
        if attention in ("dot", "local-m", "local-p"):
            sizes["d_s"] = 14
        if attention == "bahdanau-paper":
            sizes["d_readout"] = 6
        shape = ModelConfig(len(source), len(target), attention=attention, **(sizes | changes))  # type: ignore[arg-type]
        model = new_model(shape, seed=seed).eval()
        with torch.no_grad():
            for index, parameter in enumerate(model.parameters()):
                generator = torch.Generator().manual_seed(index + seed)
                parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.7)
        return Transducer(model, Description(shape, source, target, 7, 5))

    return make
