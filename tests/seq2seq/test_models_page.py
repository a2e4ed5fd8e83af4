"""The page about models names what there is."""

import dataclasses
import re
from pathlib import Path

from regard.seq2seq.architecture import ATTENTIONS, ModelConfig

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def _named(part):
    rows = [line.split("|")[1:-1] for line in part.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])], rows


def test_the_page_names_every_attention_once():
    named, _ = _named(PAGE.read_text(encoding="utf-8").split("## Options")[0])
    assert sorted(named) == sorted(ATTENTIONS)


def test_the_page_says_of_an_entry_with_which_attentions_it_goes():
    part = PAGE.read_text(encoding="utf-8").split("## Options")[1].split("## Scheduled")[0]
    entries = {field.name for field in dataclasses.fields(ModelConfig)}
    named, rows = _named(part)
    assert set(named) <= entries
    for first, homes, _ in rows:
        for entry in re.findall(r"`([^`]+)`", first):
            said = re.findall(r"`([^`]+)`", homes)
            if homes.strip().startswith("all"):
                said = sorted(set(ATTENTIONS) - set(said))
            assert sorted(said) == sorted(_accepting(entry)), entry


OTHER = {
    "cell": "lstm",
    "layers": 2,
    "decoder_layers": 2,
    "input_feeding": True,
    "score": "concat",
    "reach": 3.0,
    "filters": 3,
    "filter_width": 3,
    "d_readout": 64,
    "tied": True,
}


def _accepting(entry):
    more = {"d_readout": 64} if entry == "tied" else {}
    for attention in ATTENTIONS:
        try:
            ModelConfig(17, 19, attention=attention, **{entry: OTHER[entry]}, **more)
        except ValueError:
            continue
        yield attention
