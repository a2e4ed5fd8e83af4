import pytest

from contract_subjects import every
from regard.testing import clauses

# What may be left out, and why; a clause that silently applies to nothing would hold forever.
MAY_NOT_APPLY = {
    7: {"its weights depend on where a key stands"},
    8: {"it has no heads"},
    9: {f"{library} has no gradients" for library in ("lists", "numpy", "array-api-strict")},
    10: {"its Subject names no oracle"},
}


@pytest.mark.parametrize(("make", "clause"), every(*clauses()))
def test_the_clause_holds_or_does_not_apply_for_a_stated_reason(make, clause):
    verdict = clause.check(make())
    if verdict.outcome == "not applicable":
        assert verdict.note in MAY_NOT_APPLY.get(clause.number, set())
