"""All diagrams by name."""

from collections.abc import Callable, Mapping

from regard.learn.diagrams.bottleneck import encoder_decoder, fixed_vector
from regard.learn.diagrams.heads import multi_head
from regard.learn.diagrams.mask_shapes import mask_shapes
from regard.learn.diagrams.steps import step_order

__all__ = ["DIAGRAMS"]

DIAGRAMS: Mapping[str, Callable[[], str]] = {
    "fixed-vector": fixed_vector,
    "encoder-decoder": encoder_decoder,
    "step-order": step_order,
    "multi-head": multi_head,
    "mask-shapes": mask_shapes,
}
"""What draws each diagram, by the name of its file."""
