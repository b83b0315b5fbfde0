"""What it means that a row holds what an erasure was to take away: left over, said by others, or kept on purpose."""

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from memories.models import EXPORTING, EndUser, PrivacyCase
from memories.privacy.searching.belonging import Belonging
from memories.privacy.searching.decoding import layers
from memories.privacy.searching.matching import ANCHOR
from memories.privacy.searching.needles import Needles
from memories.privacy.searching.tables import Row, Table
from memories.privacy.searching.words import written


class Kind(Enum):
    ID = "id"
    NAME = "name"
    WORD = "word"
    TEXT = "text"


class Verdict(Enum):
    NOTHING = 0
    MENTION = 1
    HIT = 2


class Whose(Enum):
    NOBODYS = "nobody's"
    OTHERS = "another person's"
    NEWCOMERS = "of who came under the id again"
    ELSEWHERE = "another tenant's"


class Sought(NamedTuple):
    """One way in which a needle can be written."""

    kind: Kind
    value: str
    form: bytes


class Found(NamedTuple):
    place: str
    sought: Sought
    verdict: Verdict
    whose: Whose


# Place → what may stand there, and why. Everything else that names the person is a hit.
KEPT: dict[str, tuple[tuple[Kind, ...], str]] = {
    "memories.AuditEvent.object_id": ((Kind.ID,), "the trail says what was done to which object, without its content"),
    "memories.AuditEvent.actor_id": ((Kind.ID,), "the run that wrote, of which nothing but the id is left"),
    "memories.DecayPass.reached": ((Kind.ID,), "a place in the order of ids, at which a pass goes on"),
    "memories.Operator.first_name": ((Kind.WORD,), "staff may be called like the person"),
    "memories.Operator.last_name": ((Kind.WORD,), "staff may be called like the person"),
}
# Place → what may stand there too, and is told of: the program's names, and those of staff and applications, which the
# person may share ("Europe/Amsterdam", their company), or whose account may be their own.
_NAMED = (Kind.WORD, Kind.TEXT)
_ANY = (Kind.NAME, *_NAMED)
TOLD: dict[str, tuple[Kind, ...]] = {
    "auth.Permission.name": _ANY,
    "auth.Permission.codename": _ANY,
    "auth.Group.name": _NAMED,
    "contenttypes.ContentType.app_label": _ANY,
    "contenttypes.ContentType.model": _ANY,
    "public.django_migrations.app": _ANY,
    "public.django_migrations.name": _ANY,
    "memories.Tenant.slug": _NAMED,
    "memories.Tenant.name": _NAMED,
    "memories.Tenant.time_zone": _NAMED,
    "memories.APIKey.name": _NAMED,
    "memories.Operator.username": _ANY,
    "memories.Operator.email": _ANY,
    "memories.Operator.time_zone": _NAMED,
    "memories.EmbeddingSpace.model": _NAMED,
    # A browser of staff, perhaps of the same make.
    "axes.AccessAttempt.user_agent": _NAMED,
}
# Free texts of the person's own cases: whoever closes the case empties them in the transaction that closes it.
UNTIL_CLOSED = ("channel", "reference", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome")
# Where another person's memory names whom it is for: not what anybody said, so it goes with the person.
REFERENCES = re.compile(rb'"allowed_users": ?\[[^\]]*\]')
_REFERENCE = "allowed_users"
_CASE = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LETTERS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
# The length that a pickle writes before a text looks like a letter from here on.
_LONG = 48


def all_sought(needles: Needles) -> Iterator[Sought]:
    """Everything that a matcher can look for; plain names are left to short_names."""
    for text in needles.ids:
        one = uuid.UUID(text)
        # As text, as bytes, and as the number that a pickle writes.
        forms = (str(one).encode(), one.hex.encode(), one.bytes, one.bytes[::-1])
        yield from (Sought(Kind.ID, text, form) for form in forms)
    kinds = {Kind.NAME: needles.names, Kind.WORD: needles.words, Kind.TEXT: (*needles.texts, *needles.vectors)}
    for kind, values in kinds.items():
        for value in dict.fromkeys(values):
            if kind is Kind.NAME and is_plain(value):
                continue
            yield from (Sought(kind, value, form) for form in _written(value) if len(form) >= ANCHOR)


def is_plain(name: str) -> bool:
    """A few letters, or one word of a language ("assistant"): where it stands it need not mean the person."""
    return len(name.encode()) < ANCHOR or (name.isascii() and name.isalpha())


def _written(value: str) -> set[bytes]:
    """The text as it is and as JSON has it, each also as COPY writes it."""
    plain = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return {form.encode("utf-8", "replace") for one in plain for form in (one, one.replace("\\", "\\\\"))}


class Judge:
    """Knows who lives; reads rows, never writes."""

    def __init__(self, needles: Needles, case: PrivacyCase) -> None:
        self.needles, self.tenant_id = needles, case.tenant_id
        self.cases = {str(case.pk), *needles.cases}
        self.belonging = Belonging()
        living = EndUser.objects.filter(external_id__in=needles.names).exclude(pk__in=needles.ids)
        # Somebody came under the id again; and people of other tenants, whose ids are nobody's business here.
        self.newcomers = set(living.filter(tenant=case.tenant_id).values_list("pk", flat=True))
        self.also_called = set(living.values_list("external_id", flat=True))
        self._tenants: dict[uuid.UUID, uuid.UUID | None] = {}

    def look(self, table: Table, row: Row, wanted: Iterable[Sought]) -> Iterator[Found]:
        """What the row holds of them; decoded only where none stands there in plain words."""
        whose: Whose | None = None
        for sought in wanted:
            places = [name for name, value in row.items() if holds(value, sought)]
            for name in places or list(_deeper(row, sought)):
                whose = whose or self.whose(table, row)
                place = table.place(name)
                if not self._is_kept(place, row, sought):
                    yield Found(place, sought, self._verdict(place, row[name], sought, whose), whose)

    def whose(self, table: Table, row: Row) -> Whose:
        return self._whose(self.belonging.owners(table, row))

    def whose_file(self, name: str) -> Whose:
        """Of an export that was written to a file, by the case that its name begins with."""
        [said] = _CASE.findall(name) or [uuid.UUID(int=0)]
        owners = PrivacyCase.objects.filter(pk=said, type__in=EXPORTING).exclude(end_user=None)
        return self._whose(set(owners.values_list("end_user", flat=True)))

    def _whose(self, others: set[uuid.UUID]) -> Whose:
        if not others or not others.isdisjoint(map(uuid.UUID, self.needles.ids)):
            return Whose.NOBODYS
        if others <= self.newcomers:
            return Whose.NEWCOMERS
        return Whose.OTHERS if self.tenant_id in map(self._tenant_of, others) else Whose.ELSEWHERE

    def _verdict(self, place: str, value: bytes, sought: Sought, whose: Whose) -> Verdict:
        if whose is Whose.NOBODYS and sought.kind in TOLD.get(place, ()):
            return Verdict.MENTION
        return verdict(sought, whose, refers=whose is not Whose.NOBODYS and _refers(place, value, sought))

    def _is_kept(self, place: str, row: Row, sought: Sought) -> bool:
        own_case = place.rpartition(".")[0] == PrivacyCase._meta.label and row["id"].decode() in self.cases
        return sought.kind in kept_in(place) or (own_case and place.rpartition(".")[2] in UNTIL_CLOSED)

    def _tenant_of(self, person: uuid.UUID) -> uuid.UUID | None:
        if person not in self._tenants:
            self._tenants[person] = EndUser.objects.filter(pk=person).values_list("tenant", flat=True).first()
        return self._tenants[person]


def kept_in(place: str) -> tuple[Kind, ...]:
    """What may stand there."""
    return KEPT.get(place, ((), ""))[0]


def verdict(sought: Sought, whose: Whose, *, refers: bool) -> Verdict:
    """Ours is left over wherever it is but in somebody's words; what others said stays theirs, and is told of."""
    if whose is Whose.NOBODYS or (sought.kind is Kind.ID and refers):
        return Verdict.HIT
    if sought.kind in (Kind.ID, Kind.TEXT):
        # What people of another tenant say is not this one's to be told.
        return Verdict.NOTHING if whose is Whose.ELSEWHERE else Verdict.MENTION
    if sought.kind is Kind.NAME and whose is Whose.OTHERS:
        return Verdict.HIT if refers else Verdict.MENTION
    return Verdict.NOTHING


def holds(data: bytes, sought: Sought) -> bool:
    """Whether it stands there; ids of the application and values only as words of their own."""
    if sought.kind in (Kind.ID, Kind.TEXT) or len(sought.form) >= _LONG:
        return sought.form in data
    at = data.find(sought.form)
    while at >= 0:
        end = at + len(sought.form)
        begins = at == 0 or not {data[at - 1], data[at]} <= _LETTERS
        if begins and (end == len(data) or not {data[end - 1], data[end]} <= _LETTERS):
            return True
        at = data.find(sought.form, at + 1)
    return False


def _deeper(row: Row, sought: Sought) -> Iterator[str]:
    for name, value in row.items():
        if any(holds(layer.data, sought) for layer in layers(value)):
            yield name


def _refers(place: str, value: bytes, sought: Sought) -> bool:
    """Whether it is the hub that names them there, not somebody whose words these are."""
    if place.rpartition(".")[2] == _REFERENCE:
        return True
    said = [layer.data for layer in layers(written(place, value))]
    if sought.kind is not Kind.ID:
        said = [part for data in said for part in REFERENCES.findall(data)]
    return any(holds(data, sought) for data in said)
