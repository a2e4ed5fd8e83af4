"""The weights of a trained model as NumPy arrays."""

from regard.errors import InputError, explain
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.runtime.cells import Floats

__all__ = ["single", "weights_of"]


def single(model: Seq2Seq | Ensemble, name: str) -> Seq2Seq:
    """Return the model, which must be one.

    Raises
    ------
    InputError
        It is an ensemble of several.
    """
    if isinstance(model, Ensemble):
        if len(model.members) > 1:
            raise InputError(
                explain(
                    f"{name}: an ensemble is not exported to ONNX",
                    expected="the directory of one model",
                    got=f"an ensemble of {len(model.members)}",
                    help="--to numpy exports ensembles; or export one of the members",
                )
            )
        return model.members[0]
    return model


def weights_of(model: Seq2Seq | Ensemble) -> dict[str, Floats]:
    """Return float32 copies, under the names of ``state_dict()``.

    Those of an ensemble have the member's number and ``/`` before.
    """
    if isinstance(model, Ensemble):
        return {
            f"{number}/{name}": value
            for number, member in enumerate(model.members)
            for name, value in weights_of(member).items()
        }
    return {
        name: value.detach().cpu().float().numpy().copy()
        for name, value in model.state_dict().items()
    }
