"""What each finding turned out to be, looked at by hand.

``true``: the code does something else than its text or its manual says; ``design``: what is
said holds, and its authors want it; ``false``: what is said does not hold, or is told of the
wrong thing. The first line that fits decides; what none fits has not been looked at.
"""

import re

__all__ = ["judge"]

# (name, code, verdict, key of the reproduction, in words)
_LINES: tuple[tuple[str, str, str, str, str], ...] = (
    (
        r"transformers/blip\.BlipTextAttention \(cross\)",
        "RG207",
        "true",
        "blip",
        "BlipTextLayer hands the encoder's mask over as `attention_mask`, which "
        "cross-attention replaces by `encoder_attention_mask`, and that is never passed: "
        "padding of the encoder is attended to in BlipTextModel",
    ),
    (
        r"transformers/imagegpt\.ImageGPTAttention \(cross\)",
        "RG207",
        "true",
        "imagegpt",
        "`encoder_attention_mask` is taken and never used; the decoder's own mask is added "
        "instead",
    ),
    (
        r"transformers/autoformer\.",
        "RG",
        "true",
        "autoformer",
        "delays are repeated head by head while values lie example by example: with several "
        "heads every example is aggregated with delays of others",
    ),
    (
        r"transformers/nystromformer\.",
        "RG202",
        "true",
        "nystromformer",
        "the convolution beside the attention reads values that the mask forbids",
    ),
    (
        r"transformers/mra\.",
        "RG",
        "true",
        "mra",
        "without its CUDA kernel the context is all zeros, and nothing says so",
    ),
    (
        r"transformers/prophetnet\.ProphetNetAttention",
        "RG303",
        "true",
        "prophetnet",
        "the scores before the softmax are returned as attention weights",
    ),
    (
        r"transformers/vjepa2\.VJEPA2Pooler",
        "RG207",
        "true",
        "vjepa2",
        "the eager form drops the mask; the fused one applies it",
    ),
    (
        r"transformers/informer\.",
        "RG803",
        "true",
        "informer",
        "keys are sampled at random in eval mode too, so that results cannot be repeated "
        "without a seed",
    ),
    (
        r"transformers/doge\.",
        "RG602",
        "true",
        "doge",
        "the mask is an exponential of an unbounded projection: large inputs make it infinite",
    ),
    (
        r"transformers/vits\.VitsAttention \(cross\)",
        "RG701",
        "true",
        "vits",
        "`key_value_states` is taken and never used: keys and values are the queries' own",
    ),
    (
        r"transformers/convbert\.",
        "RG202",
        "true",
        "convbert",
        "the convolution beside the attention reads positions that the mask forbids",
    ),
    (
        r"transformers/yoso\.",
        "RG202",
        "true",
        "yoso",
        "the mask is turned into 0 and 1 as though it were 0 and -10000: with the model's own "
        "1 and 0, and with the lowest number, hidden keys are read; YosoModel reads padding",
    ),
    (
        r"transformers/dab_detr\.DetrAttention \(cross\)",
        "RG701",
        "true",
        "dab_detr",
        "`key_value_states` is taken and never used: keys and values are the queries' own",
    ),
    (
        r"transformers/llama4\.Llama4VisionAttention",
        "RG207",
        "true",
        "llama4",
        "`attention_mask` is taken and never used: layers of the vision model hand one over, "
        "and it is lost",
    ),
    (
        r"transformers/edgetam_video\.EdgeTamVideoPerceiverAttention",
        "RG402",
        "true",
        "edgetam_video",
        "heads and positions are swapped once more after the attention function has swapped "
        "them: with several heads rows are mixed (the released model has one)",
    ),
    (
        r"transformers/funnel\.FunnelRelMultiheadAttention",
        "RG105",
        "true",
        "funnel",
        "the positions that the model makes for its pooled blocks fail for texts of one or two "
        "tokens, and pooling for up to four",
    ),
    (
        r"transformers/(big_bird|bigbird_pegasus)\..* \(blocks",
        "RG303",
        "true",
        "big_bird",
        "in eval mode every random block is the first block, whose keys are counted once more "
        "for each; returned weights are written over each other there, so that they sum to "
        "less than 1 and do not give the context",
    ),
    (
        r"transformers/evolla\.EvollaSequenceAlignerCrossAttention",
        "RG504",
        "true",
        "evolla",
        "scores are divided by the root of the number of heads, not of the size of a head, "
        "though its text calls them scaled dot products",
    ),
    (
        r"transformers/(mm_)?grounding_dino\.\w+BiMultiHeadAttention \(axes as documented\)",
        "RG104",
        "true",
        "grounding_dino",
        "weights come as (batch * heads, queries, keys); its manual gives heads an axis of "
        "their own",
    ),
    (
        r"transformers/esm\.EsmFoldTriangularSelfAttentionBlock \(mask as documented\)",
        "RG101",
        "true",
        "esmfold",
        "its manual asks for a boolean mask, and one is subtracted from, which raises",
    ),
    (
        r"transformers/prophetnet\.ProphetNetNgramSelfAttention",
        "RG203",
        "true",
        "prophetnet streams",
        "biases by distance of the predicting streams come from rows of other places, streams "
        "and heads: they lie in another order than what they are added to, so that later words "
        "move earlier rows",
    ),
    (
        r"transformers/\w+\.\w+DeformableAttention \(around points\)",
        "RG101",
        "true",
        "around points",
        "its error says that 2 or 4 coordinates are taken, and 2 raise: offsets of all levels "
        "lie on one axis there, and are divided as though each level had its own",
    ),
    (
        r"transformers/\w+\.\w+DeformableAttention \(mask of its kin\)",
        "RG101",
        "true",
        "around points",
        "a mask (batch, keys), as its kin take it, meets values that are split by heads "
        "already, and raises",
    ),
    (
        r"transformers/swiftformer\.SwiftFormerEfficientAdditiveAttention",
        "RG301",
        "true",
        "swiftformer",
        "the softmax that weighs the queries runs over an axis of size 1, so that all weigh "
        "alike and `w_g` is never learned",
    ),
    (
        r"transformers/visual_bert\.VisualBertRegionToPhraseAttention",
        "RG701",
        "true",
        "visual_bert",
        "`value` is made and never used",
    ),
    (
        r"torch/MultiheadAttention \(all keys masked, weights",
        "RG205",
        "true",
        "torch empty row",
        "one example without keys makes the gradient NaN for the whole batch, with "
        "need_weights=True alone",
    ),
    (
        r"torch/MultiheadAttention \(one mask a head, by repeat\)",
        "RG801",
        "true",
        "torch repeat",
        "masks of a head made by repeat: examples use each other's masks (a mistake of the "
        "caller that raises nothing)",
    ),
    (
        r"torch/MultiheadAttention \(batch_first forgotten\)",
        "RG106",
        "true",
        "torch batch first",
        "examples attend to each other (a mistake of the caller that raises nothing)",
    ),
    (
        r"joeynmt/.* \(keys projected once\)",
        "RG803",
        "true",
        "joeynmt",
        "keys that were projected for one batch are used for the next",
    ),
    (
        r"onmt/InputFeedRNNDecoder \(copying\)",
        "RG",
        "true",
        "opennmt copy",
        "the decoder calls its copy attention without lengths: padding is copied from",
    ),
    (
        r"onmt/InputFeedRNNDecoder \(coverage\)",
        "RG701",
        "true",
        "opennmt coverage",
        "the decoder never hands coverage to the attention",
    ),
    (
        r"onmt/GlobalAttention \(coverage given\)",
        "RG803",
        "true",
        "opennmt coverage",
        "`enc_out += ...` writes into the caller's encoder states",
    ),
    (
        r"onmt/InputFeedRNNDecoder \(axes as documented\)",
        "RG",
        "true",
        "opennmt axes",
        'attns["std"] comes as (tgt, batch, src); the manual says (batch, tgt, src)',
    ),
    (
        r"allennlp_light/LinearAttention",
        "RG105",
        "true",
        "allennlp one key",
        "`squeeze(1)` takes the axis of the keys where there is one: every example gets the "
        "weights of all",
    ),
    (
        r"allennlp_light/",
        "RG303",
        "true",
        "allennlp",
        "masked scores count as 0 in the softmax: where valid ones are far below, the sum of "
        "their weights vanishes",
    ),
    (
        r"keras/MultiHeadAttention \(query mask\)",
        "RG207",
        "true",
        "keras query mask",
        "an explicit `query_mask` is overwritten",
    ),
    (
        r"keras/MultiHeadAttention \(all keys masked, no weights\)",
        "RG205",
        "true",
        "keras empty row",
        "a query without keys gets the mean of all values, and 0 where weights are asked for",
    ),
    (
        r"x_transformers/Attention \(all keys masked\)",
        "RG205",
        "true",
        "x-transformers empty row",
        "even weights are returned for a row whose output is zeroed",
    ),
    (
        r"x_transformers/Attention \(top keys",
        "RG105",
        "true",
        "x-transformers top",
        "fewer keys than `sparse_topk` raise",
    ),
    (
        r"x_transformers/Decoder \(shift_tokens",
        "RG202",
        "true",
        "x-transformers left padding",
        "tokens are shifted without the mask: content of padding moves the next real row",
    ),
    (
        r"x_transformers/(Attention \(own values left out|\w+ \(orthog_residual)",
        "RG20[23]|RG401",
        "true",
        "x-transformers orthogonal",
        "projections run over positions and features at once: with a causal mask later "
        "positions move earlier rows, and padding moves real ones",
    ),
    (
        r"x_transformers/\w+ \(num_residual_streams",
        "RG301",
        "true",
        "x-transformers streams",
        "the softmax of the mixing matrix runs over an axis of size 1 (`(s1 s2)` is split "
        "where there are two axes already), so that the matrix is constant and is not learned",
    ),
    (
        r"onmt/TransformerDecoderLayer \(parallel residual",
        "RG701",
        "true",
        "opennmt parallel",
        "`layer_norm_res` is made and never used",
    ),
    (
        r"x_transformers/Attention \(gumbel",
        "RG803",
        "design",
        "",
        "weights are sampled, in eval mode too; with `random` declared nothing is said",
    ),
    (
        r"torch/scaled_dot_product_attention \(no scale",
        "RG501",
        "design",
        "",
        "scores are not scaled, and `scale=1.0` asks for that",
    ),
    (
        r"d2l/masked_softmax",
        "RG803",
        "true",
        "d2l",
        "the scores of the caller are overwritten with -1e6",
    ),
)


def judge(name: str, code: str, message: str) -> tuple[str, str, str]:
    """The verdict on a finding, the key of its reproduction, and the reason."""
    for who, what, verdict, key, words in _LINES:
        if re.match(who, name) and re.match(what, f"{code} {message}"):
            return verdict, key, words
    return "open", "", ""
