"""What may be claimed from attention weights, on which evidence, and what not.

>>> from regard.audit import audit, planted_inputs, train_planted
>>> honest, deceived = (train_planted(penalty=x).case for x in (0.0, 1.0))
>>> inputs = planted_inputs(60)
>>> audit(honest, inputs).verdict.headline
'SUPPORTED AT L2 AND L3'
>>> audit(deceived, inputs).verdict.headline
'REFUSED'

Three claims are told apart, and each is granted by itself. L1, where the model put weight, asks
that the weights are the ones the answer is made with (G0). L2, that removing what it attends to
changes the output more than chance, asks the input: G2 and G4. L3, that it ranks tokens about
as well as the best method tried, adds G3. No test here grants that anything happened for a
reason.

The modules, and what each owns
-------------------------------
===================  ========================================================================
what goes in
``inputs``           one input (or one output step), and its erasures
``input_files``      files of them
``protocol``         what a case must and may offer, and a case made of functions
``target``           from ``model.py:case`` to a case
``sample``           inputs with the model's answers, and every further question, batched, once
adapters
``classifier``       regard's own attention classifiers (BiLSTM, BiGRU, average);
                     ``classifier_training`` trains them, ``from_classifier`` makes them cases
``from_torch``       a PyTorch module whose attention is a named submodule
``from_hf``          a Hugging Face model: one layer, head, or rollout
``from_regard``      a trained regard transducer, one input a step
what is measured
``measure``          what a test is: columns, one number an input; ``measures`` lists them
``ranking``          orders of erasure: attention, leave-one-out, gradient, random
``erase_input``      tokens erased from the input (delete, mask, resample)
``erase_weights``    one weight zeroed
``flip_fraction``    weights removed in order until the answer flips
``permute``          weights shuffled
``adversary_exact``  the farthest weights with one answer; ``adversary_search``, as published
``uniform``          every weight the same
``correlate``        agreement with leave-one-out and gradients; ``kendall`` has the statistics
``null_space``       directions in which weights change nothing
``rollout``          attention followed through layers: rollout, and ``flow``
``gold_mass``        weight on, and hits of, tokens that people marked
``retrain``          trained again: uniform, other seeds, frozen weights, deceived
``adversary_model``  a whole model trained to answer alike and attend elsewhere
what decides
``capture``          G0: are these the weights of the answer
``randomness``       what is found where two equal calls differ; ``reach`` finds modules
``planted``          the control task, its honest and its deceived model
``selftest``         G1: the controls are told apart here
``gates``            G2, G3, G4 from the columns
``interval``         paired bootstrap intervals, and how many more inputs would decide
``downgrades``       what weakens a reading without failing it
``wording``          the verdict in words
``verdict``          frozen records of all of it: the JSON schema
what is shown
``run``              the audit from beginning to end, within a budget
``store``            what is measured so far, so that a run can go on
``worst``            the inputs where the weights say least
``text``             the report for a terminal
``page``             the report as one offline page; ``page_style`` is its style
``reproduce``        published figures measured again: sst, pronoun, copy
===================  ========================================================================
"""

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regard.audit.from_classifier import ClassifierCase, ClassifierData, train_classifier
    from regard.audit.from_hf import from_transformers
    from regard.audit.from_regard import from_regard
    from regard.audit.from_torch import from_torch
    from regard.audit.input_files import read_inputs
    from regard.audit.inputs import Input, steps_of
    from regard.audit.page import page
    from regard.audit.planted import planted_inputs, train_planted
    from regard.audit.protocol import Case, FunctionCase, ReadOut, Trained
    from regard.audit.run import audit
    from regard.audit.selftest import run_selftest
    from regard.audit.text import text
    from regard.audit.verdict import Audit, ClaimError, Verdict

_HOMES = {
    "Audit": "verdict",
    "Case": "protocol",
    "ClaimError": "verdict",
    "ClassifierCase": "from_classifier",
    "ClassifierData": "from_classifier",
    "FunctionCase": "protocol",
    "Input": "inputs",
    "ReadOut": "protocol",
    "Trained": "protocol",
    "Verdict": "verdict",
    "audit": "run",
    "from_regard": "from_regard",
    "from_torch": "from_torch",
    "from_transformers": "from_hf",
    "page": "page",
    "planted_inputs": "planted",
    "read_inputs": "input_files",
    "run_selftest": "selftest",
    "steps_of": "inputs",
    "text": "text",
    "train_classifier": "from_classifier",
    "train_planted": "planted",
}

__all__ = [
    "Audit",
    "Case",
    "ClaimError",
    "ClassifierCase",
    "ClassifierData",
    "FunctionCase",
    "Input",
    "ReadOut",
    "Trained",
    "Verdict",
    "audit",
    "from_regard",
    "from_torch",
    "from_transformers",
    "page",
    "planted_inputs",
    "read_inputs",
    "run_selftest",
    "steps_of",
    "text",
    "train_classifier",
    "train_planted",
]


def __getattr__(name: str) -> Any:
    # The adapters need PyTorch; nothing is imported before it is asked for.
    if name not in _HOMES:
        raise AttributeError(f"module 'regard.audit' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"regard.audit.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


class _Package(types.ModuleType):
    """A package whose functions are not hidden by submodules of the same name."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing the submodule `page` binds it here, where `page` is its function.
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
