"""The pronoun task: attention that was trained to hide the pronoun, and the audit that says no.

Sentences with one gender's pronouns in them; the class is the gender. Six classifiers,
embeddings alone and BiLSTM, each with penalties 0, 0.1 and 1 on the weight of pronouns [1]_.

References
----------
.. [1] Pruthi, Gupta, Dhingra, Neubig and Lipton, "Learning to Deceive with Attention-Based
   Explanations", ACL 2020, table 3. arXiv:1909.07913
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from regard.audit.classifier import ClassifierConfig
from regard.audit.classifier_training import ClassifierTraining
from regard.audit.from_classifier import ClassifierCase, ClassifierData
from regard.audit.inputs import Input
from regard.audit.reproduce.kept import Models, classifier
from regard.audit.reproduce.result import Check, Reproduction, gain_of_top
from regard.audit.run import audit
from regard.errors import InputError, explain
from regard.files import unreadable

__all__ = ["PRONOUNS", "read_pronouns", "run"]

PRONOUNS = frozenset(["he", "she", "her", "his", "him", "himself", "herself"])
_PENALTIES = (0.0, 0.1, 1.0)
# Share of weight on pronouns, in percent: accepted from, to, and as published.
_BANDS = {
    ("embedding", 0.0): (97.2, 100.0, "99.2"),
    ("embedding", 0.1): (0.0, 8.0, "3.4"),
    ("embedding", 1.0): (0.0, 10.0, "0.8"),
    ("bilstm", 0.0): (92.8, 100.0, "96.8"),
    ("bilstm", 0.1): (0.0, 0.5, "0.00"),
    ("bilstm", 1.0): (0.0, 0.1, "0.00"),
}
_ACCURACY = {
    ("embedding", 0.0): "100",
    ("embedding", 0.1): "99.4",
    ("embedding", 1.0): "99.2",
    ("bilstm", 0.0): "100",
    ("bilstm", 0.1): "100",
    ("bilstm", 1.0): "100",
}
_AUDITED = 800  # of half as many some verdicts stay open


def read_pronouns(folder: str | Path) -> dict[str, list[Input]]:
    """Return ``train``, ``dev`` and ``test``; ``gold`` are the pronouns.

    Raises
    ------
    InputError
        A file is missing, or a line is no label and text.
    """
    found = {}
    for part in ("train", "dev", "test"):
        path = Path(folder) / f"{part}.txt"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise InputError(
                unreadable(path, error, expected=f"{part}.txt", missing="name its folder")
            ) from error
        found[part] = [_read(line, f"{path}, line {k}") for k, line in enumerate(lines, 1)]
    return found


def run(
    data: str | None,
    *,
    seed: int,
    quick: bool,
    models: Models,
    progress: Callable[[str, int, int], None],
) -> Reproduction:
    """Train and audit the six classifiers; what is in the folder `models` is not trained."""
    parts = read_pronouns(data or "")
    if quick:
        parts = {name: part[:1500] for name, part in parts.items()}
    labelled = ClassifierData(parts["train"], parts["dev"], parts["test"], deciding=PRONOUNS)
    checks = []
    for encoder in ("embedding", "bilstm"):
        for penalty in _PENALTIES:
            progress(f"{encoder}, lambda {penalty:g}", 0, 1)
            settings = _settings(encoder, penalty, labelled.symbols, quick)
            trained = classifier(models, labelled, *settings, seed=seed)
            case = trained.case
            assert isinstance(case, ClassifierCase)
            checks += _checks(case, trained.accuracy, encoder, penalty, seed)
            progress(f"{encoder}, lambda {penalty:g}", 1, 1)
    statements = (
        "The published models take some 135,000 steps of one sentence; these 9,000 of four "
        "(embedding) and 1,700 of 16 (BiLSTM). So the embedding model's mass at lambda 1 may "
        "stay above the published 0.8 %, and its accepted band is wider for it.",
        "Embeddings of the embedding model start at a tenth of the published N(0, 1): from "
        "there some seeds of these few steps ended with a model that looks at the pronouns of "
        "one gender, and takes a full stop for the other.",
    )
    return Reproduction("pronoun", seed, tuple(checks), statements)


def _checks(
    case: ClassifierCase, accuracy: float, encoder: str, penalty: float, seed: int
) -> list[Check]:
    name = f"{encoder}, lambda {penalty:g}"
    test = case.data.test
    weights = [row for k in range(0, len(test), 256) for row in case.weights(test[k : k + 256])]
    mass = np.mean(
        [row[sorted(one.gold or ())].sum() for row, one in zip(weights, test, strict=True)]
    )
    # Marks stay out: the audit has to find out without them.
    blind = [replace(one, gold=None) for one in test]
    found = audit(case, blind, n=_AUDITED, seed=seed, tests=["erase_input", "correlate"])
    outcome = found.verdict.outcome("L2")
    wanted = "refused" if penalty else "granted"
    tables = {table.test: table for table in found.tables}
    rows = {row.name: row for table in tables.values() for row in table.rows}
    top = rows["delete, top token"]
    tau = next(row for key, row in rows.items() if key.startswith("tau-b attention / leave"))
    low, high, published = _BANDS[encoder, penalty]
    shown = (
        f"{outcome}: drop {top.estimate.value:.3f}, random {top.random:.3f}, "
        f"best {top.best:.3f}"
    )
    gain = gain_of_top(found)
    return [
        Check(
            f"{name}: accuracy %", 100 * accuracy, 99.0, math.inf, _ACCURACY[encoder, penalty]
        ),
        Check(f"{name}: mass on pronouns %", 100 * float(mass), low, high, published),
        Check(f"{name}: L2 {wanted}", float(outcome == wanted), 1.0, 1.0, "", shown),
        Check(f"{name}: F with one token", gain.value, note=str(gain)),
        Check(f"{name}: tau attention / leave-one-out", tau.estimate.value),
    ]


def _settings(
    encoder: str, penalty: float, symbols: int, quick: bool
) -> tuple[ClassifierConfig, ClassifierTraining]:
    embedding = encoder == "embedding"
    config = ClassifierConfig(
        symbols,
        encoder=encoder,  # type: ignore[arg-type]  # one of the two
        score="tanh",
        d_in=128,
        d_hidden=64,
        scale=0.1 if embedding else 1.0,
        sparse=True,
    )
    if embedding:
        # Small batches: pronouns are in every one, and take many steps for each that rare words
        # take. Learnt by heart, rare words would do instead of the pronouns that are hidden.
        training = ClassifierTraining(
            epochs=2 if quick else 4,
            batch=4,
            learning_rate=2e-3,
            sparse_rate=2e-3,
            select="loss",  # by accuracy, an epoch that hides little yet may be picked
            penalty=penalty,
        )
    else:
        training = ClassifierTraining(
            epochs=2 if quick else 3, batch=16, learning_rate=1e-3, penalty=penalty
        )
    return config, training


def _read(line: str, where: str) -> Input:
    label, tab, text = line.partition("\t")
    tokens = tuple(text.split())
    if not (tab and tokens):
        raise InputError(
            explain(f"{where}: no example", expected="label<TAB>text", got=line[:60])
        )
    gold = frozenset(i for i, token in enumerate(tokens) if token in PRONOUNS)
    return Input(tokens, gold=gold, label=label)
