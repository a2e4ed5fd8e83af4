"""Slips planted in the wrappers of rare kinds: what is declared must be able to fail.

A slip counts as found where one form of the class says it with a warning or an error and the
wrapper as it is says nothing of the kind.
"""

import dataclasses
import importlib
from collections.abc import Iterator
from typing import Any

__all__ = ["planted", "section"]

# (family, class, a text of the wrapper, what stands there instead)
_SLIPS = (
    ("xlnet", "XLNetRelativeAttention", "hidden = (~mask)", "hidden = mask"),
    ("xlnet", "XLNetRelativeAttention", "return found[1], ", "return found[1].flip(1), "),
    ("t5gemma2", "T5Gemma2MergedAttention", ".tril()", ".tril(1)"),
    (
        "t5gemma2",
        "T5Gemma2MergedAttention",
        "mask[:, None, :m].expand(n, t, m)",
        "torch.ones(n, t, m, dtype=torch.bool)",
    ),
    (
        "muse_glimmer_assistant",
        "MuseGlimmerAssistantAttention",
        "attention_mask=bias",
        "attention_mask=None",
    ),
    (
        "minimax",
        "MiniMaxLightningAttention",
        "attention_mask=mask",
        "attention_mask=None",
    ),
    ("zaya", "ZayaAttention", '"conv": mask', '"conv": None'),
    ("sam2_video", "Sam2VideoRoPEAttention", "key=rows", "key=rows.roll(1, 0)"),
    (
        "sam2_video",
        "Sam2VideoMemoryAttention",
        "memory=memory,",
        "memory=memory[:1].expand_as(memory),",
    ),
    (
        "mask2former",
        "Mask2FormerMaskedAttentionDecoderLayer",
        "repeat_interleave(self.heads, dim=0)",
        "repeat(self.heads, 1, 1)",
    ),
    (
        "rwkv",
        "RwkvSelfAttention",
        "self.attention(hidden_states)",
        "self.attention(hidden_states.flip(1))",
    ),
    (
        "pegasus_x",
        "PegasusXGlobalLocalAttention",
        "self.attention.block_size = t",
        "self.attention.block_size = n * t",
    ),
    ("reformer", "LSHSelfAttention", "attention_mask=mask", "attention_mask=None"),
    (
        "minicpm_ocr",
        "MiniCPMOcrViTWindowAttentionMerger",
        ".transpose(0, 1).reshape(1, 4 * n, -1)",
        ".reshape(1, 4 * n, -1)",
    ),
    (
        "superglue",
        "SuperGlueAttentionalGNN",
        ".repeat_interleave(2, dim=0)",
        ".repeat(2, 1, 1, 1)",
    ),
    ("prophetnet", "ProphetNetNgramSelfAttention", ".tril()", ".tril(1)"),
    (
        "rf_detr",
        "RfDetrMultiscaleDeformableAttention",
        "attention_mask=mask",
        "attention_mask=None",
    ),
    (
        "rf_detr",
        "RfDetrMultiscaleDeformableAttention",
        "found[1].reshape(n, q, -1, 6)",
        "found[1].softmax(dim=-1).reshape(n, q, -1, 6)",
    ),
    ("slanet", "SLANetAttentionGRUCell", "(state, memory,", "(state, memory.roll(1, 0),"),
    (
        "visual_bert",
        "VisualBertRegionToPhraseAttention",
        ".log_softmax(dim=-1)",
        ".log_softmax(dim=1)",
    ),
    (
        "maskformer",
        "MaskFormerDetrMHAttentionMap",
        ".sum(2)",
        ".mean(2)",
    ),
    (
        "swiftformer",
        "SwiftFormerEfficientAdditiveAttention",
        "attention(hidden_states)",
        "attention(hidden_states.flip(1))",
    ),
    (
        "patchtsmixer",
        "PatchTSMixerGatedAttention",
        "attention(hidden_states)",
        "attention(hidden_states.cumsum(1))",
    ),
    ("longt5", "LongT5LocalAttention", "mask.long()", "torch.ones_like(mask).long()"),
    ("longt5", "LongT5TransientGlobalAttention", "mask.long()", "torch.ones_like(mask).long()"),
    (
        "longformer",
        "LongformerSelfAttention",
        "attention_window = [4]",
        "attention_window = [8]",
    ),
    ("led", "LEDEncoderAttention", "torch.where(mask[:, 0], 10000.0, -10000.0)", "10000.0"),
    (
        "big_bird",
        "BigBirdBlockSparseAttention",
        "to_mask=columns",
        "to_mask=torch.ones_like(columns)",
    ),
    ("big_bird", "BigBirdAttention", "band_mask=band", "band_mask=torch.ones_like(band)"),
    (
        "gemma3n",
        "Gemma3nAudioAttention",
        "conf_attention_context_right = 4, 0",
        "conf_attention_context_right = 5, 0",
    ),
    ("gemma3n", "Gemma3nAudioConformerAttention", "~mask", "mask & False"),
    ("gemma4", "Gemma4AudioAttention", "(back >= 0)", "(back >= -1)"),
    (
        "glm5_next",
        "Glm5NextTextAttention",
        "attention(hidden_states, mask)",
        "attention(hidden_states.flip(0), mask)",
    ),
    (
        "florence2",
        "Florence2VisionWindowAttention",
        "attention(hidden_states)",
        "attention(hidden_states.flip(0))",
    ),
    (
        "florence2",
        "Florence2VisionChannelAttention",
        "attention(hidden_states)",
        "attention(hidden_states.cumsum(1))",
    ),
    (
        "deformable_detr",
        "MultiScaleDeformableAttention",
        "places.sigmoid()",
        "places.sigmoid().roll(1, 0)",
    ),
    (
        "d_fine",
        "DFineMultiscaleDeformableAttention",
        "attention_mask=mask[..., None]",
        "attention_mask=None",
    ),
    (
        "detr",
        "DetrMHAttentionMap",
        "torch.where(mask, 0.0, LOWEST)",
        "torch.where(mask, LOWEST, 0.0)",
    ),
    (
        "evolla",
        "EvollaSequenceCompressorAttention",
        "attention(memory, hidden_states, mask)",
        "attention(memory, hidden_states, torch.ones_like(mask))",
    ),
    (
        "idefics2",
        "Idefics2PerceiverAttention",
        "mask[:, None, None, :] > 0",
        "mask[:, None, None, :] == 0",
    ),
    ("grounding_dino", "GroundingDinoBiMultiHeadAttention", "=~mask", "=mask"),
    (
        "esm",
        "EsmFoldTriangleAttention",
        "mask[:, :, None] & mask[:, None]",
        "mask[:, :, None] | mask[:, None]",
    ),
    (
        "esm",
        "EsmFoldTriangularSelfAttentionBlock",
        "mask.float()",
        "torch.ones_like(mask).float()",
    ),
    ("esm", "EsmFoldInvariantPointAttention", "mask.float()", "torch.ones_like(mask).float()"),
    (
        "esmfold2",
        "EsmFold2RowAttentionPooling",
        "attention(pairs, mask)",
        "attention(pairs, ~mask)",
    ),
    ("inkling2", "Inkling2BlockAttentionResidual", "memory[:, None, -1]", "memory[:, None, 0]"),
    (
        "levit",
        "LevitAttentionSubsample",
        "attention(hidden_states)",
        "attention(hidden_states.roll(1, 0))",
    ),
    (
        "efficientloftr",
        "EfficientLoFTRAggregatedAttention",
        "[x.transpose(1, 2)",
        "[x.cumsum(0).transpose(1, 2)",
    ),
    (
        "edgetam_video",
        "EdgeTamVideoRoPESelfAttention",
        "torch.arange(x.shape[1])",
        "torch.zeros(x.shape[1])",
    ),
)


def planted() -> Iterator[dict[str, Any]]:
    """Ask every class with its slip; rows of what was said."""
    from real_code import huggingface  # noqa: PLC0415 - heavy
    from real_code.run import ask  # noqa: PLC0415
    from real_code.subject import Skip  # noqa: PLC0415

    for family, name, old, new in _SLIPS:
        module = _module(family, name)
        found: dict[str, list[str]] = {}
        for forms in huggingface.subjects(module, name):
            if isinstance(forms, Skip) or old not in forms[0].source:
                continue
            slipped = dataclasses.replace(forms[0], source=forms[0].source.replace(old, new))
            plain, said = (_loud(ask(each)) for each in (forms[0], slipped))
            found[forms[0].name] = sorted(
                f"{code} {relation}" for code, relation in said - plain
            )
        yield {"class": f"{family}.{name}", "old": old, "new": new, "said": found}


def _module(family: str, name: str) -> str:
    """The module of a family that holds a class."""
    from real_code import huggingface  # noqa: PLC0415 - heavy

    own = (m for m in huggingface.families() if m.split(".")[2] == family)
    return next(m for m in own if hasattr(importlib.import_module(m), name))


def _loud(row: dict[str, Any]) -> set[tuple[str, str]]:
    loud = (f for f in row["findings"] if f["level"] != "note")
    # What cannot be asked is no find.
    return {(f["code"], f["relation"]) for f in loud if not f["code"].startswith("RG9")}


def section(rows: list[dict[str, Any]]) -> str:
    """Write the section of the page."""
    codes = [sorted({c for said in row["said"].values() for c in said}) for row in rows]
    lines = ["## Slips that were planted", ""]
    lines.append(
        "What is declared of a rare kind is written by hand. That it can fail was tried by a "
        f"slip in its wrapper: {sum(map(bool, codes))} of {len(rows)} were found "
        "(`python benchmarks/real_code --planted`)."
    )
    lines += ["", "| class | instead of | stands | found |", "|---|---|---|---|"]
    for row, found in zip(rows, codes, strict=True):
        shown = ", ".join(found) or "no"
        lines.append(f"| `{row['class']}` | `{row['old']}` | `{row['new']}` | {shown} |")
    return "\n".join(lines) + "\n"
