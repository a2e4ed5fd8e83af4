"""Which states of ``torch.nn.MultiheadAttention`` can be loaded, and why not the others."""

from collections.abc import Mapping
from typing import Any

from regard.errors import ConventionError, explain

__all__ = ["require_loadable"]


def require_loadable(
    state_dict: Mapping[str, Any], prefix: str, *, d_model: int, kdim: int, vdim: int
) -> None:
    """Refuse a state that would leave a module of these sizes half loaded.

    Parameters
    ----------
    state_dict : mapping
        Of ``torch.nn.MultiheadAttention`` or of a model that holds one.
    prefix : str
        What stands before the module's own names in it.
    d_model, kdim, vdim : int
        Sizes of the module that loads.

    Raises
    ------
    ConventionError
        The state has ``bias_k`` or ``bias_v``, or other projections than the module.
    """
    extra = [name for name in ("bias_k", "bias_v") if prefix + name in state_dict]
    if extra:
        raise ConventionError(
            explain(
                f"MultiHeadAttention.load_state_dict(): {' and '.join(extra)} cannot be loaded",
                expected="the state of a torch.nn.MultiheadAttention with add_bias_kv=False",
                got=", ".join(prefix + name for name in extra),
                because="they append a key and a value that belong to no position",
            )
        )
    theirs = prefix + "in_proj_weight" in state_dict
    separate = prefix + "q_proj_weight" in state_dict
    ours = kdim == vdim == d_model  # PyTorch's rule for one array instead of three
    if (theirs or separate) and theirs != ours:
        one, three = (
            "one in_proj_weight",
            "separate q_proj_weight, k_proj_weight, v_proj_weight",
        )
        raise ConventionError(
            explain(
                "MultiHeadAttention.load_state_dict(): the projections are laid out otherwise",
                expected=one if ours else three,
                got=one if theirs else three,
                because=f"this module was built with d_model={d_model}, "
                f"kdim={kdim}, vdim={vdim}",
                help="build it with the kdim and vdim of the module that was saved",
            )
        )
