"""Minimal reproductions of what the check found in transformers' rarer kinds, without it."""

from collections.abc import Callable
from typing import Any

from real_code.evidence_transformers import Figures, gap

__all__ = ["STREAMS"]


def prophetnet_streams() -> Figures:
    """Rows of the first two words of ProphetNet's decoder when all later words change."""
    import torch  # noqa: PLC0415
    from transformers import ProphetNetConfig  # noqa: PLC0415
    from transformers.models.prophetnet.modeling_prophetnet import (  # noqa: PLC0415
        ProphetNetDecoder,
    )

    config = ProphetNetConfig(
        vocab_size=50,
        hidden_size=32,
        num_encoder_attention_heads=4,
        num_decoder_attention_heads=4,
        num_decoder_layers=2,
        decoder_ffn_dim=48,
        ngram=2,
        dropout=0.0,
        add_cross_attention=False,
        is_decoder=True,
    )
    decoder = ProphetNetDecoder(config).eval()
    for table in (p for p in decoder.parameters() if p.dim() > 1):
        torch.nn.init.normal_(table, std=0.3)  # as after training: what is drawn is faint
    words = torch.randint(2, 49, (1, 6))
    other = words.clone()
    other[:, 2:] = 2 + (words[:, 2:] + 5) % 47
    one, two = (decoder(input_ids=w, use_cache=False) for w in (words, other))
    found = {"main stream": gap(one.last_hidden_state[:, :2], two.last_hidden_state[:, :2])}
    for stream, name in enumerate(("first", "second")):
        a, b = (x.last_hidden_state_ngram.unflatten(1, (2, -1)) for x in (one, two))
        found[f"{name} predicting stream"] = gap(a[:, stream, :2], b[:, stream, :2])
    return {f"change, {name}": value for name, value in found.items()}


def swiftformer() -> Figures:
    """What the learned vector that pools the queries can do."""
    import torch  # noqa: PLC0415
    from transformers import SwiftFormerConfig  # noqa: PLC0415
    from transformers.models.swiftformer.modeling_swiftformer import (  # noqa: PLC0415
        SwiftFormerEfficientAdditiveAttention,
    )

    layer = SwiftFormerEfficientAdditiveAttention(SwiftFormerConfig(), 32).eval()
    rows = torch.randn(2, 7, 32)
    before = layer(rows)
    with torch.no_grad():
        layer.w_g.normal_(std=9.0)
    return {"change of the result with another `w_g`": gap(before, layer(rows))}


def visual_bert() -> Figures:
    """What the projection of values in attention from regions to phrases can do."""
    import torch  # noqa: PLC0415
    from transformers import VisualBertConfig  # noqa: PLC0415
    from transformers.models.visual_bert.modeling_visual_bert import (  # noqa: PLC0415
        VisualBertRegionToPhraseAttention,
    )

    config = VisualBertConfig(hidden_size=32, num_attention_heads=4)
    layer = VisualBertRegionToPhraseAttention(config).eval()
    query, key, keep = torch.randn(2, 5, 32), torch.randn(2, 7, 32), torch.ones(2, 7)
    before = layer(query, key, keep)
    with torch.no_grad():
        layer.value.weight.normal_(std=9.0)
    return {"change of the scores with other values": gap(before, layer(query, key, keep))}


def around_points() -> Figures:
    """Sampling around boxes, around points, and under a mask of keys: 1 where it raises."""
    import torch  # noqa: PLC0415
    from transformers import Deimv2Config, DFineConfig, RTDetrV2Config  # noqa: PLC0415
    from transformers.models.d_fine import modeling_d_fine as d_fine  # noqa: PLC0415
    from transformers.models.deimv2 import modeling_deimv2 as deimv2  # noqa: PLC0415
    from transformers.models.rt_detr_v2 import modeling_rt_detr_v2 as rt_detr_v2  # noqa: PLC0415

    shapes = [(4, 5), (2, 3), (1, 2)]
    figures = {}
    for name, kind, config in (
        ("d_fine", d_fine.DFineMultiscaleDeformableAttention, DFineConfig()),
        ("deimv2", deimv2.Deimv2MultiscaleDeformableAttention, Deimv2Config()),
        ("rt_detr_v2", rt_detr_v2.RTDetrV2MultiscaleDeformableAttention, RTDetrV2Config()),
    ):
        layer = kind(config).eval()
        given = {
            "hidden_states": torch.randn(2, 7, config.d_model),
            "encoder_hidden_states": torch.randn(2, 28, config.d_model),
            "spatial_shapes": torch.tensor(shapes),
            "spatial_shapes_list": shapes,
        }
        boxes, points = torch.full((2, 7, 1, 4), 0.5), torch.full((2, 7, 3, 2), 0.5)
        masked = {"attention_mask": torch.ones(2, 28, dtype=torch.bool)}
        for what, more in (
            ("boxes", {"reference_points": boxes}),
            ("points", {"reference_points": points}),
            ("boxes and a mask", {"reference_points": boxes, **masked}),
        ):
            figures[f"{name}, {what}"] = float(_raises(layer, {**given, **more}))
    return figures


def _raises(layer: Any, given: dict[str, Any]) -> bool:
    try:
        layer(**given)
    except RuntimeError:
        return True
    return False


STREAMS: dict[str, Callable[[], Figures]] = {
    "prophetnet streams": prophetnet_streams,
    "swiftformer": swiftformer,
    "visual_bert": visual_bert,
    "around points": around_points,
}
