"""Minimal reproductions of what the check found in transformers, without the check.

Each function returns what it measured; a figure of 0 where something must change, or another
figure where nothing may, is the defect.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["TRANSFORMERS", "Figures", "gap"]

Figures = dict[str, float]


def blip() -> Figures:
    """Encoder padding in the text model's cross-attention."""
    import torch  # noqa: PLC0415
    from transformers.models.blip.configuration_blip import BlipTextConfig  # noqa: PLC0415
    from transformers.models.blip.modeling_blip_text import BlipTextModel  # noqa: PLC0415

    config = BlipTextConfig(
        hidden_size=32,
        encoder_hidden_size=24,
        num_attention_heads=4,
        num_hidden_layers=2,
        intermediate_size=48,
        vocab_size=50,
        max_position_embeddings=40,
        is_decoder=True,
    )
    model = BlipTextModel(config, add_pooling_layer=False).eval()
    words, pixels = torch.randint(1, 49, (2, 5)), torch.randn(2, 7, 24)
    keep = torch.ones(2, 7, dtype=torch.long)
    cut = keep.clone()
    cut[:, 4:] = 0

    def run(seen: Any, mask: Any) -> Any:
        return model(
            words, encoder_hidden_states=seen, encoder_attention_mask=mask, is_decoder=True
        ).last_hidden_state

    louder = pixels.clone()
    louder[:, 4:] = 9.0
    return {
        "change when the encoder's mask forbids three keys": gap(
            run(pixels, keep), run(pixels, cut)
        ),
        "change with the content of the keys that are forbidden": gap(
            run(pixels, cut), run(louder, cut)
        ),
    }


def imagegpt() -> Figures:
    """Encoder padding in ImageGPT's cross-attention."""
    import torch  # noqa: PLC0415
    from transformers import ImageGPTConfig  # noqa: PLC0415
    from transformers.models.imagegpt.modeling_imagegpt import ImageGPTAttention  # noqa: PLC0415

    config = ImageGPTConfig(n_embd=32, n_head=4, n_positions=16, vocab_size=20)
    layer = ImageGPTAttention(config, is_cross_attention=True, layer_idx=0).eval()
    query, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    bias = torch.zeros(2, 1, 1, 7)
    bias[..., 4:] = torch.finfo(torch.float32).min

    def run(mask: Any) -> Any:
        return layer(query, encoder_hidden_states=memory, encoder_attention_mask=mask)[0]

    return {"change when the encoder's mask forbids three keys": gap(run(None), run(bias))}


def autoformer() -> Figures:
    """Examples of a batch that know each other."""
    import torch  # noqa: PLC0415
    from transformers.models.autoformer.modeling_autoformer import (  # noqa: PLC0415
        AutoformerAttention,
    )

    layer = AutoformerAttention(embed_dim=32, num_heads=4, layer_idx=0).eval()
    batch = torch.randn(3, 12, 32)
    together = layer(batch)[0]
    other = batch.clone()
    other[1:] = torch.randn(2, 12, 32)
    return {
        "change of example 0 when the others change": gap(together[0], layer(other)[0][0]),
        "example 0 alone against in the batch": gap(together[0], layer(batch[:1])[0][0]),
    }


def nystromformer() -> Figures:
    """Padding that reaches real tokens through the convolution over values."""
    import torch  # noqa: PLC0415
    from transformers import NystromformerConfig, NystromformerModel  # noqa: PLC0415

    config = NystromformerConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=80,
    )
    model = NystromformerModel(config).eval()
    words = torch.randint(1, 49, (1, 12))
    mask = torch.ones(1, 12, dtype=torch.long)
    mask[:, 8:] = 0
    other = words.clone()
    other[:, 8:] = torch.randint(1, 49, (1, 4))
    a, b = (model(w, attention_mask=mask).last_hidden_state[:, :8] for w in (words, other))
    return {"change of real tokens with the words that are masked": gap(a, b)}


def mra() -> Figures:
    """What comes out where the CUDA kernel is not there."""
    import torch  # noqa: PLC0415
    from transformers import MraConfig  # noqa: PLC0415
    from transformers.models.mra.modeling_mra import MraSelfAttention  # noqa: PLC0415

    config = MraConfig(hidden_size=64, num_attention_heads=2, max_position_embeddings=64)
    layer = MraSelfAttention(config).eval()
    found = layer(torch.randn(2, 64, 64), torch.zeros(2, 1, 1, 64))[0]
    return {"largest entry of the context": float(found.abs().max())}


def vjepa2() -> Figures:
    """A mask under the eager form of attention and under the fused one."""
    import torch  # noqa: PLC0415
    from transformers import VJEPA2Config  # noqa: PLC0415
    from transformers.models.vjepa2.modeling_vjepa2 import (  # noqa: PLC0415
        VJEPA2PoolerCrossAttention,
    )

    figures = {}
    for form in ("eager", "sdpa"):
        torch.manual_seed(0)
        config = VJEPA2Config(hidden_size=32, num_attention_heads=4)
        config._attn_implementation = form
        layer = VJEPA2PoolerCrossAttention(config).eval()
        query, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
        bias = torch.zeros(2, 1, 5, 7)
        bias[..., 4:] = torch.finfo(torch.float32).min
        a, b = (layer(query, memory, memory, mask)[0] for mask in (None, bias))
        figures[f"change when the mask forbids three keys, {form}"] = gap(a, b)
    return figures


def informer() -> Figures:
    """Two equal calls in eval mode."""
    import torch  # noqa: PLC0415
    from transformers.models.informer.modeling_informer import (  # noqa: PLC0415
        InformerProbSparseAttention,
    )

    layer = InformerProbSparseAttention(32, 4, sampling_factor=1, layer_idx=0).eval()
    x = torch.randn(2, 24, 32)
    return {"change between two equal calls": gap(layer(x)[0], layer(x)[0])}


def doge() -> Figures:
    """A mask that is an exponential of an unbounded projection."""
    import torch  # noqa: PLC0415
    from torch.nn import functional  # noqa: PLC0415

    a, projected = torch.tensor([0.9]), torch.tensor([110.0])
    return {
        "exp(A * softplus(dt)) in float32": float((a * functional.softplus(projected)).exp())
    }


def convbert() -> Figures:
    """Padding that reaches real tokens through the convolution beside the attention."""
    import torch  # noqa: PLC0415
    from transformers import ConvBertConfig, ConvBertModel  # noqa: PLC0415

    config = ConvBertConfig(
        vocab_size=50,
        hidden_size=32,
        embedding_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=40,
    )
    model = ConvBertModel(config).eval()
    words = torch.randint(1, 49, (1, 12))
    mask = torch.ones(1, 12, dtype=torch.long)
    mask[:, 8:] = 0
    other = words.clone()
    other[:, 8:] = (words[:, 8:] + 7) % 49 + 1
    a, b = (model(w, attention_mask=mask).last_hidden_state[:, :8] for w in (words, other))
    return {"change of real tokens with the words that are masked": gap(a, b)}


def vits() -> Figures:
    """Cross-attention that never reads what it is to attend to."""
    import torch  # noqa: PLC0415
    from transformers import VitsConfig  # noqa: PLC0415
    from transformers.models.vits.modeling_vits import VitsAttention  # noqa: PLC0415

    layer = VitsAttention(VitsConfig(hidden_size=32, num_attention_heads=4)).eval()
    query = torch.randn(2, 5, 32)
    a, b = (layer(query, key_value_states=torch.randn(2, 7, 32))[0] for _ in range(2))
    return {"change with another `key_value_states`": gap(a, b)}


def prophetnet() -> Figures:
    """The encoder's attentions, which its manual calls those after the softmax."""
    import torch  # noqa: PLC0415
    from transformers import ProphetNetConfig  # noqa: PLC0415
    from transformers.models.prophetnet.modeling_prophetnet import (  # noqa: PLC0415
        ProphetNetEncoder,
    )

    config = ProphetNetConfig(
        vocab_size=50,
        hidden_size=32,
        num_encoder_layers=2,
        num_encoder_attention_heads=4,
        encoder_ffn_dim=48,
        max_position_embeddings=40,
    )
    encoder = ProphetNetEncoder(config).eval()
    weights = encoder(torch.randint(1, 49, (2, 7)), output_attentions=True).attentions[0]
    return {
        "least entry": float(weights.min()),
        "largest sum over the keys": float(weights.sum(-1).max()),
    }


def yoso() -> Figures:
    """Padding of the whole model, in the form without a CUDA kernel."""
    import torch  # noqa: PLC0415
    from transformers import YosoConfig, YosoModel  # noqa: PLC0415

    config = YosoConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=40,
        use_expectation=True,
        conv_window=None,
    )
    model = YosoModel(config).eval()
    words = torch.randint(5, 50, (2, 11))
    keep = torch.ones(2, 11, dtype=torch.long)
    keep[:, 7:] = 0
    other = words.clone()
    other[:, 7:] = (other[:, 7:] + 7) % 50
    found = [model(w, attention_mask=keep).last_hidden_state[:, :7] for w in (words, other)]
    full = model(words, attention_mask=torch.ones_like(keep)).last_hidden_state[:, :7]
    return {
        "change of real rows with the content of padding": gap(found[0], found[1]),
        "change of real rows when padding is allowed": gap(found[0], full),
    }


def dab_detr() -> Figures:
    """What is looked at in the attention of DAB-DETR's encoder."""
    import torch  # noqa: PLC0415
    from transformers import DabDetrConfig  # noqa: PLC0415
    from transformers.models.dab_detr.modeling_dab_detr import DetrAttention  # noqa: PLC0415

    config = DabDetrConfig(hidden_size=32, encoder_attention_heads=4)
    layer = DetrAttention(config).eval()
    rows, places = torch.randn(2, 5, 32), torch.randn(2, 5, 32)
    one, other = (
        layer(rows, object_queries=places, key_value_states=torch.randn(2, 7, 32))
        for _ in range(2)
    )
    without = layer(rows, object_queries=places)
    return {
        "change with another `key_value_states`": gap(one[0], other[0]),
        "change without `key_value_states`": gap(one[0], without[0]),
    }


def llama4() -> Figures:
    """The mask of Llama 4's attention to pictures."""
    import torch  # noqa: PLC0415
    from transformers.models.llama4 import modeling_llama4  # noqa: PLC0415
    from transformers.models.llama4.configuration_llama4 import (  # noqa: PLC0415
        Llama4VisionConfig,
    )

    config = Llama4VisionConfig(hidden_size=32, num_attention_heads=4, intermediate_size=48)
    config._attn_implementation = "eager"
    layer = modeling_llama4.Llama4VisionAttention(config).eval()
    rows = torch.randn(2, 5, 32)
    turned = torch.ones(5, 4, dtype=torch.complex64)
    hidden = torch.zeros(2, 1, 5, 5)
    hidden[..., 3:] = torch.finfo(torch.float32).min
    masked = layer(rows, turned, attention_mask=hidden)[0]
    return {
        "change when the mask forbids two keys": gap(masked, layer(rows, turned)[0]),
    }


def edgetam_video() -> Figures:
    """One query alone and among others, by the number of heads (1 as released)."""
    import torch  # noqa: PLC0415
    from transformers.models.edgetam_video.configuration_edgetam_video import (  # noqa: PLC0415
        EdgeTamVideoConfig,
    )
    from transformers.models.edgetam_video.modeling_edgetam_video import (  # noqa: PLC0415
        EdgeTamVideoPerceiverAttention,
    )

    found = {}
    query, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    for heads in (1, 4):
        config = EdgeTamVideoConfig()
        config.perceiver_resampler_hidden_size = 32
        config.perceiver_resampler_num_attention_heads = heads
        config.perceiver_resampler_attention_head_dim = 32 // heads
        config._attn_implementation = "eager"
        layer = EdgeTamVideoPerceiverAttention(config).eval()
        among, alone = (layer(q, memory, memory)[:, :1] for q in (query, query[:, :1]))
        found[f"change of the first row with other queries, heads = {heads}"] = gap(
            among, alone
        )
    return found


def funnel() -> Figures:
    """Short texts in Funnel's encoder of three blocks, as released."""
    import torch  # noqa: PLC0415
    from transformers import FunnelBaseModel, FunnelConfig  # noqa: PLC0415

    config = FunnelConfig(d_model=32, n_head=4, d_head=8, d_inner=48, vocab_size=50)
    model = FunnelBaseModel(config).eval()

    def runs(length: int) -> bool:
        try:
            model(torch.randint(4, 49, (1, length)))
        except RuntimeError:
            return False
        return True

    taken = [n for n in range(1, 17) if runs(n)]
    return {
        "blocks": float(len(config.block_sizes)),
        "fewest tokens that it takes": float(taken[0]),
        "lengths up to 16 that raise": float(16 - len(taken)),
    }


def gap(a: Any, b: Any) -> float:
    """Return the largest difference."""
    return float((a - b).abs().max())


TRANSFORMERS: dict[str, Callable[[], Figures]] = {
    "blip": blip,
    "imagegpt": imagegpt,
    "autoformer": autoformer,
    "nystromformer": nystromformer,
    "convbert": convbert,
    "mra": mra,
    "prophetnet": prophetnet,
    "vits": vits,
    "vjepa2": vjepa2,
    "informer": informer,
    "doge": doge,
    "yoso": yoso,
    "dab_detr": dab_detr,
    "llama4": llama4,
    "edgetam_video": edgetam_video,
    "funnel": funnel,
}
