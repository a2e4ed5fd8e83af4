"""Many alignments together: several sentences, and several models of one sentence."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from regard.alignment.record import Record
from regard.errors import InputError, explain

__all__ = ["Collection"]


@dataclass(frozen=True)
class Collection:
    """Records in their order.

    Parameters
    ----------
    records : sequence of Record
        At least one. A name stands once for each model.

    Raises
    ------
    InputError
        There is none, something is no record, or one model has two of a name.
    """

    records: tuple[Record, ...]

    def __init__(self, records: Iterable[Record]) -> None:
        found = tuple(records)
        strange = [record for record in found if not isinstance(record, Record)]
        if strange or not found:
            got = type(strange[0]).__name__ if strange else "none"
            raise InputError(
                explain(
                    "Collection(): `records` is no list of records",
                    expected="at least one Record",
                    got=got,
                    help="Record(alignment.weights, alignment.target, alignment.source)"
                    if got == "Alignment"
                    else None,
                )
            )
        seen: dict[tuple[str, str], int] = {}
        for number, record in enumerate(found):
            key = (record.name, record.model)
            if record.name and key in seen:
                raise InputError(
                    explain(
                        "Collection(): two records have one name and one model",
                        expected="a name once for each model",
                        got=f"records {seen[key]} and {number}: name {record.name!r}, "
                        f"model {record.model!r}",
                    )
                )
            seen[key] = number
        object.__setattr__(self, "records", found)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __repr__(self) -> str:
        shown = "".join(f"\n  {record!r}," for record in self.records[:3])
        rest = f"\n  and {len(self) - 3} more" if len(self) > 3 else ""
        return f"Collection of {len(self)}:{shown}{rest}"

    def __getitem__(self, place: int) -> Record:
        return self.records[place]

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in the order of their first record."""
        return tuple(dict.fromkeys(record.model for record in self.records))

    def slice(
        self, *, layers: Iterable[int] | None = None, heads: Iterable[int] | None = None
    ) -> Self:
        """Return the collection with some layers and heads of every record.

        Raises
        ------
        InputError
            A record has no such layer or head; the text names it.
        """
        layers = None if layers is None else tuple(layers)
        heads = None if heads is None else tuple(heads)
        cut = []
        for number, record in enumerate(self.records):
            try:
                cut.append(record.slice(layers=layers, heads=heads))
            except InputError as error:
                raise InputError(f"record {number} ({record.name!r}): {error}") from error
        return type(self)(cut)

    def _repr_html_(self) -> str:
        from regard.alignment.notebook import collection_html  # noqa: PLC0415 - as above

        return collection_html(self)
