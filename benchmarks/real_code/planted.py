"""Slips planted in the wrappers of rare kinds: what is declared must be able to fail.

A slip counts as found where one form of the class says it with a warning or an error and the
wrapper as it is says nothing of the kind.
"""

import dataclasses
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
)


def planted() -> Iterator[dict[str, Any]]:
    """Ask every class with its slip; rows of what was said."""
    from real_code import huggingface  # noqa: PLC0415 - heavy
    from real_code.run import ask  # noqa: PLC0415
    from real_code.subject import Skip  # noqa: PLC0415

    for family, name, old, new in _SLIPS:
        module = f"transformers.models.{family}.modeling_{family}"
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
