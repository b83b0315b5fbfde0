"""What the columns of a model mean to whoever exports, erases or looks for personal data.

Each model declares it beside its fields, and nothing else lists columns: stores, waivers, exports and omissions follow
(docs/decisions/0028-columns-and-kinds.md). A column without a declaration is neither exported nor left out, and one
that can hold text is neither erased nor waived: tests refuse both. The search after an erasure reads the database's
catalogue, so it finds the texts of a column that nobody declared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models


@dataclass(frozen=True)
class Column:
    """`erased`: it holds texts or bytes of a person. `waived`: it could, and holds nothing personal, and why.

    Access exports have it unless it is `omitted`, for a reason, or `reworded`: exported in another form under this or
    another name (memories/privacy/exports/rows.py). Portability has it if the person `provided` it.
    """

    erased: bool = False
    waived: str = ""
    omitted: str = ""
    provided: bool = False
    reworded: bool = False

    @property
    def is_exported(self) -> bool:
        return not self.omitted and not self.reworded


_CODES = "codes, choices, counts and ids of ours, and keyed hashes"
_NUMBERS = "numbers and hashes computed from exported text, for searches; a reader learns nothing from them"
_COUNTS = "how many rows each of the hub's tables has, for staff: the rows themselves are exported"
_STAFF = "staff appear as their role, in the field that ends in `kind`, not as persons; a run is named by `run`"

# What somebody said or a model wrote; what the person provided of that.
TEXT, OWN_TEXT = Column(erased=True), Column(erased=True, provided=True)
# The same for numbers, moments, switches and references, which can hold no text.
VALUE, OWN_VALUE = Column(), Column(provided=True)
# A choice of ours; one of what the person provided.
CODE, OWN_CODE = Column(waived=_CODES), Column(waived=_CODES, provided=True)
# A hash, index or vector of texts; a number of that kind that says nothing of them.
DERIVED, NUMBER = Column(erased=True, omitted=_NUMBERS), Column(omitted=_NUMBERS)
MACHINE = Column(omitted="bookkeeping of the hub's machines: locks, wake-ups, positions")
INSIDE = Column(omitted="of the row that it is inside of")
STAFF = Column(waived=_CODES, omitted=_STAFF)
COUNTS = Column(waived=_CODES, omitted=_COUNTS)
KEY = Column(omitted="a number of the application's key, not of a person")
SETTING = Column(waived="names and settings of an application, written by staff")
REWORDED = Column(erased=True, reworded=True)
SPACE = Column(omitted="exported as `model`")
# Of every table that has them.
_EVERYWHERE: Mapping[str, Column] = {
    "tenant": Column(omitted="the application, which `about` names once"),
    "end_user": Column(omitted="whose row it is: this person's"),
}


class Columns:
    """The columns of a model by name; those that are exported stand in the order that exports have.

    `waived`: nothing in the table is personal, and why. `omitted`: no export has any of it, and why.
    """

    def __init__(self, *, waived: str = "", omitted: str = "", **columns: Column) -> None:
        self.waived, self.omitted, self._declared = waived, omitted, columns

    def of(self, model: type[models.Model]) -> Mapping[str, Column]:
        """Name → column, with those that mean the same everywhere."""
        names = {field.name for field in model._meta.concrete_fields}
        return {name: one for name, one in _EVERYWHERE.items() if name in names} | self._declared

    @property
    def erased(self) -> tuple[str, ...]:
        return tuple(name for name, one in self._declared.items() if one.erased)

    @property
    def exported(self) -> tuple[str, ...]:
        return tuple(name for name, one in self._declared.items() if one.is_exported)

    @property
    def provided(self) -> tuple[str, ...]:
        return tuple(name for name, one in self._declared.items() if one.provided)


def columns_of(model: type[models.Model]) -> Columns:
    """Errors: AttributeError, where the model declares none."""
    found: Any = model
    declared: Columns = found.columns
    return declared


def by_reason(model: type[models.Model], reason: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(reason, columns) of those that are `waived` or `omitted`, as named; without columns: the whole model."""
    columns = columns_of(model)
    if whole := getattr(columns, reason):
        yield whole, ()
    if whole or columns.waived:
        return
    found: dict[str, list[str]] = {}
    for name, one in columns.of(model).items():
        if text := getattr(one, reason):
            found.setdefault(text, []).append(name)
    yield from ((text, tuple(names)) for text, names in found.items())
