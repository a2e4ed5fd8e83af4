"""The sizes at which benchmarks/additive.py and its companions measure."""

__all__ = ["SIZES", "Size"]

Size = tuple[int, int, int, int]

SIZES: dict[str, Size] = {  # batch, T_dec, T_enc, d_attn
    "S1": (8, 64, 64, 256),
    "M": (16, 100, 100, 256),
    "D": (64, 1, 50, 512),
    "S2": (4, 512, 512, 256),
}
