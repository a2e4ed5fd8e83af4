"""Small models and data; every size is another prime."""

import pytest
import torch

from regard.seq2seq.batch import Batch, collate
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.train import new_model


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
