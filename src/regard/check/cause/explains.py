"""Which rules a kind of oddity would explain."""

__all__ = ["EVERY", "MIXED", "NARROW", "UNUSED", "WEIGHED"]

MIXED = frozenset(
    {"RG103", "RG106", "RG303", "RG305", "RG401", "RG402", "RG404", "RG504", "RG801", "RG802"}
    | {"RG202", "RG203", "RG204", "RG205", "RG104", "RG304", "RG701"}
)
WEIGHED = MIXED | {"RG301", "RG302", "RG206", "RG201", "RG207", "RG208", "RG501", "RG502"}
EVERY = WEIGHED | {"RG803", "RG102", "RG105", "RG701", "RG503", "RG603"}
NARROW = frozenset({"RG301", "RG303", "RG603", "RG504", "RG304", "RG401", "RG601", "RG602"})
UNUSED = frozenset({"RG701", "RG207", "RG305", "RG304", "RG504", "RG202", "RG201", "RG404"})
