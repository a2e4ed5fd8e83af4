"""Minimal reproductions of what the check found in attention of rarer kinds, without the check.

As :mod:`real_code.evidence_transformers`: each function returns what it measured.
"""

from collections.abc import Callable
from typing import Any

from real_code.evidence_transformers import Figures, gap

__all__ = ["KINDS"]


def big_bird() -> Figures:
    """BigBird's blocks in eval mode: every random block is the first one, counted again."""
    import torch  # noqa: PLC0415
    from transformers import BigBirdConfig  # noqa: PLC0415
    from transformers.models.big_bird.modeling_big_bird import (  # noqa: PLC0415
        BigBirdBlockSparseAttention,
        BigBirdModel,
    )

    config = BigBirdConfig(
        hidden_size=32,
        num_attention_heads=4,
        attention_type="block_sparse",
        block_size=2,
        num_random_blocks=3,
        max_position_embeddings=64,
    )
    config._attn_implementation = "eager"
    layer = BigBirdBlockSparseAttention(config, seed=0).eval()
    words, every = torch.randn(1, 32, 32), torch.ones(1, 32)
    blocks, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(every, 2)

    def run(x: Any) -> Any:
        return layer(x, band, rows, columns, blocks, blocks)

    context, weights = (x.detach() for x in run(words))
    value = layer.value(words).view(1, 32, 4, 8).transpose(1, 2)
    again = (weights @ value).transpose(1, 2).reshape(1, 32, 32)
    # Queries and keys of zero weigh all that they read alike.
    layer.query.weight.data.zero_()
    layer.query.bias.data.zero_()
    even, row = (x.detach()[0] for x in run(words))
    value = layer.value(words).detach()[0]
    share = torch.linalg.lstsq(
        torch.stack([value[0:2].sum(0), value[6:12].sum(0), value[30:].sum(0)], dim=-1),
        even[8],
    ).solution
    return {
        "least sum of returned weights": float(weights.sum(-1).min()),
        "change of the context by using the returned weights": gap(context, again),
        "returned weight of a key of the first block, all scores 0": float(row[0, 8, 0]),
        "its weight in the context": float(share[0]),
        "weight of a key beside it in the context": float(share[1]),
    }


def evolla() -> Figures:
    """Evolla's scale of scores between text and protein."""
    import torch  # noqa: PLC0415
    from transformers import EvollaConfig  # noqa: PLC0415
    from transformers.models.evolla.modeling_evolla import (  # noqa: PLC0415
        EvollaSequenceAlignerCrossAttention,
    )

    config = EvollaConfig()
    heads, width = config.num_attention_heads, config.hidden_size // config.num_attention_heads
    with torch.device("meta"):
        layer = EvollaSequenceAlignerCrossAttention(config, protein_encoder_dim=8)
    return {
        "heads as released": float(heads),
        "features of a head as released": float(width),
        "factor of the scores": layer.scale,
        "1 / sqrt(features of a head)": width**-0.5,
    }


def esmfold() -> Figures:
    """A boolean mask, as the manual of EsmFold's block asks for: 1 where it raises."""
    import torch  # noqa: PLC0415
    from transformers.models.esm.configuration_esm import TrunkConfig  # noqa: PLC0415
    from transformers.models.esm.modeling_esmfold import (  # noqa: PLC0415
        EsmFoldTriangularSelfAttentionBlock,
    )

    config = TrunkConfig(
        sequence_state_dim=16,
        pairwise_state_dim=16,
        sequence_head_width=8,
        pairwise_head_width=8,
    )
    block = EsmFoldTriangularSelfAttentionBlock(config).eval()
    residues, pairs = torch.randn(1, 5, 16), torch.randn(1, 5, 5, 16)

    def raises(mask: Any) -> float:
        try:
            block(residues, pairs, mask)
        except RuntimeError:
            return 1.0
        return 0.0

    every = torch.ones(1, 5, dtype=torch.bool)
    return {"raises with booleans": raises(every), "raises with floats": raises(every.float())}


def grounding_dino() -> Figures:
    """Axes of the weights of Grounding DINO's attention both ways, batch of 2 and 4 heads."""
    import torch  # noqa: PLC0415
    from transformers import GroundingDinoConfig  # noqa: PLC0415
    from transformers.models.grounding_dino.modeling_grounding_dino import (  # noqa: PLC0415
        GroundingDinoBiMultiHeadAttention,
    )

    config = GroundingDinoConfig(d_model=16)
    config.encoder_ffn_dim, config.encoder_attention_heads = 64, 8
    layer = GroundingDinoBiMultiHeadAttention(config).eval()
    (_, weights), _ = layer(torch.randn(2, 7, 16), torch.randn(2, 5, 16))
    return {"axes (its manual says 4)": float(weights.ndim), "first axis": float(len(weights))}


KINDS: dict[str, Callable[[], Figures]] = {
    "big_bird": big_bird,
    "evolla": evolla,
    "esmfold": esmfold,
    "grounding_dino": grounding_dino,
}
