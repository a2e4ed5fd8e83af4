"""What is public, by page of the reference: a test asks that all of it is documented.

A page is a package or a job; a module's public names are those of its ``__all__``, in that
order, or the few that are named here.
"""

import importlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["PAGES", "Module", "Page", "public"]

os.environ.setdefault("KERAS_BACKEND", "torch")


@dataclass(frozen=True)
class Module:
    """A module and its public names.

    Attributes
    ----------
    name : str
    names : tuple of str
        All of ``__all__`` if none is given.
    cites : bool
        Whether what it computes is defined by papers, which must be named.
    """

    name: str
    names: tuple[str, ...] = ()
    cites: bool = False

    def public(self) -> tuple[str, ...]:
        """Return the names, without those that another module is the home of."""
        return self.names or tuple(importlib.import_module(self.name).__all__)


@dataclass(frozen=True)
class Page:
    """A page of the reference.

    Attributes
    ----------
    name, title, told : str
        Its file's name, its heading, and what stands below that.
    modules : tuple of Module
    mirrors : str
        A page whose functions of the same names tell the parameters of this one's.
    """

    name: str
    title: str
    told: str
    modules: tuple[Module, ...]
    mirrors: str = ""


def _all(package: str, *names: str, cites: bool = False) -> tuple[Module, ...]:
    return tuple(Module(f"{package}.{name}", cites=cites) for name in names)


PAGES = (
    Page(
        "compute",
        "Compute",
        "Scores, masks, weights and contexts on NumPy, PyTorch, JAX or any array-API library; "
        "the calls of one decoder step take nested lists too.",
        (
            Module("regard.attention.steps", cites=True),
            Module(
                "regard.attention.attend", ("Attended", "attend", "self_attention"), cites=True
            ),
            Module("regard.attention.heads", cites=True),
            Module(
                "regard.attention.scores",
                ("additive", "concat", "dot", "general", "scaled_dot"),
                cites=True,
            ),
            Module("regard.attention.weights", ("softmax",), cites=True),
            Module("regard.attention.sparse", cites=True),
            *_all("regard.attention", "normalizers", "masks"),
            Module("regard.attention.coverage", cites=True),
            Module(
                "regard.attention.local", ("local_attend", "predicted_positions"), cites=True
            ),
            Module("regard.attention.location", ("location", "location_features"), cites=True),
            Module("regard.attention.monotonic", cites=True),
            Module("regard.kernels.choose", ("backend", "additive_path")),
        ),
    ),
    Page(
        "oracle",
        "The oracle",
        "The same mathematics on plain lists, one equation a line, for reading beside a paper "
        "and for testing against.",
        _all("regard.attention", "reference", "reference_variants", cites=True),
        mirrors="compute",
    ),
    Page(
        "axes",
        "Axes and errors",
        "One name an axis, everywhere, and one layout of every error.",
        (
            Module("regard.axes", ("Array", "Nested", "checked", "nested_shape")),
            *_all("regard", "errors"),
        ),
    ),
    Page(
        "nn",
        "PyTorch modules",
        "Attentions and decoders with weights, and drop-ins for other libraries' own.",
        (
            Module("regard.nn.modules"),
            Module("regard.nn.multihead"),
            Module("regard.nn.softmax"),
            Module("regard.nn.memory", ("Memory",)),
            Module("regard.nn.decoder", ("Decoded", "Decoder", "DecoderState", "Stepped")),
            Module("regard.nn.decoders", ("BahdanauDecoder", "LuongDecoder", "PlainDecoder")),
            *_all("regard.nn", "paper", "input_feeding", "local", "coverage", "location"),
            *_all("regard.nn", "monotonic", "compat", "keras", "hf"),
        ),
    ),
    Page(
        "check",
        "Check",
        "What `regard check` does, from Python: findings as data, a context manager for your "
        "own runs, and the contract as a test suite.",
        (
            Module("regard.check.api", ("check",)),
            Module("regard.check.watch", ("Watch", "watch")),
            Module("regard.check.finding"),
            Module("regard.testing.checks"),
            Module("regard.testing.contract"),
            Module("regard.testing.subject", ("Subject",)),
            Module("regard.testing.verdict"),
        ),
    ),
    Page(
        "alignment",
        "See and align",
        "Attention weights with their tokens: as data, as pictures, as links between words, "
        "scored against gold.",
        (
            *_all("regard.alignment", "matrix", "record", "collection", "collection_files"),
            *_all("regard.alignment", "counterfactual", "recording", "explorer.page"),
            *_all("regard.alignment", "svg_map", "head_grid", "curves", "pictures"),
            Module("regard.alignment.heatmap", ("heatmap", "save")),
            *_all(
                "regard.alignment",
                "extract",
                "rules",
                "words",
                "symmetrize",
                "links",
                "link_files",
            ),
            *_all("regard.alignment", "score", "traps"),
        ),
    ),
    Page(
        "seq2seq",
        "Train and answer",
        "From pairs of texts to a model that rewrites one into the other, and to one that "
        "needs NumPy alone.",
        (
            Module("regard.seq2seq.transducer"),
            Module("regard.seq2seq.runtimes", ("load",)),
            Module("regard.seq2seq.runtime.transducer", ("NumpyTransducer",)),
            Module("regard.seq2seq.runtime.onnx_model", ("OnnxTransducer",)),
            Module("regard.seq2seq.rewriter", ("Rewriter",)),
            Module("regard.seq2seq.search.choices"),
            Module("regard.seq2seq.search.hypothesis"),
            Module("regard.seq2seq.search.constraint", ("Constraint", "Trie")),
            Module("regard.seq2seq.pairs", ("Columns", "Pairs", "read_pairs")),
            Module("regard.seq2seq.job", ("JobSettings", "train_pairs")),
            Module("regard.seq2seq.model", ("ModelConfig", "Scored", "Seq2Seq")),
            Module("regard.seq2seq.settings", ("TrainConfig",)),
            Module("regard.seq2seq.train", ("Trainer", "new_model", "train")),
            Module("regard.seq2seq.events"),
            Module("regard.seq2seq.evaluation"),
            Module("regard.seq2seq.metrics"),
            Module("regard.seq2seq.export.export", ("Export", "export_model")),
            Module("regard.seq2seq.recipes.copying"),
        ),
    ),
    Page(
        "aligner",
        "Word aligner",
        "Links between the words of sentences and their translations, learned from the pairs.",
        (
            Module("regard.aligner.corpus", ("SentencePairs", "read_pairs")),
            Module("regard.aligner.settings"),
            Module("regard.aligner.train", ("train_aligner",), cites=True),
            Module("regard.aligner.model", ("Aligner", "Believed"), cites=True),
            Module("regard.aligner.links", ("links_of",)),
        ),
    ),
    Page(
        "audit",
        "Audit",
        "What may be claimed from attention weights: cases, inputs, verdicts and reports.",
        (
            Module("regard.audit.run", ("audit",)),
            Module("regard.audit.inputs", ("Input", "steps_of")),
            Module("regard.audit.input_files", ("read_inputs",)),
            Module("regard.audit.protocol", ("Case", "FunctionCase", "ReadOut", "Trained")),
            Module("regard.audit.verdict", ("Audit", "ClaimError", "Verdict")),
            Module("regard.audit.from_regard", ("from_regard",)),
            Module("regard.audit.from_torch", ("from_torch",)),
            Module("regard.audit.from_hf", ("from_transformers",)),
            Module(
                "regard.audit.from_classifier",
                ("ClassifierCase", "ClassifierData", "train_classifier"),
            ),
            Module("regard.audit.planted", ("planted_inputs", "train_planted")),
            Module("regard.audit.selftest", ("run_selftest",)),
            Module("regard.audit.page", ("page",)),
            Module("regard.audit.text", ("text",)),
        ),
    ),
    Page(
        "learn",
        "Learn",
        "The lessons as data, and what runs, draws and shows them.",
        (
            *_all("regard.learn", "catalog", "fences", "execute", "compare", "rewrite"),
            *_all("regard.learn", "html", "mathml", "page", "site"),
            *_all("regard.learn.diagrams", "drawing", "chart", "every"),
        ),
    ),
)


def public(page: Page) -> Iterator[tuple[Module, str, object]]:
    """Go through a page's public names: the module, the name, the object.

    Modules of an extra that is not installed are left out.
    """
    for module in page.modules:
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:
            continue
        for name in module.public():
            yield module, name, getattr(loaded, name)
