"""The verdict on a row that still holds a search term: left over, said by others, or kept on purpose.

An id of the hub's own is a trace wherever it is, except in somebody's words. WORD_COLUMNS names the columns of words.
A column that is not named there is the hub's own: what it holds of a person refers to them.
"""

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from memories.models import EXPORTING, EndUser, PrivacyCase
from memories.privacy.searching.decoding import layers
from memories.privacy.searching.matching import ANCHOR
from memories.privacy.searching.ownership import Ownership
from memories.privacy.searching.search_terms import SearchTerms
from memories.privacy.searching.tables import Row, SearchedTable


class TraceKind(Enum):
    ID = "id"
    NAME = "name"
    WORD = "word"
    TEXT = "text"


class TraceVerdict(Enum):
    NOTHING = 0
    MENTION = 1
    HIT = 2


class Owner(Enum):
    """Whose row a trace is in; RETURNED: a new person under the erased id."""

    NOBODY = "nobody"
    OTHER_PERSON = "another person"
    RETURNED = "returned"
    OTHER_TENANT = "another tenant"


class TermPattern(NamedTuple):
    """One form in which a search term can be written."""

    kind: TraceKind
    value: str
    form: bytes


class TraceFinding(NamedTuple):
    place: str
    pattern: TermPattern
    verdict: TraceVerdict
    owner: Owner


# Place → what may be there, and why. Everything else that names the person is a hit.
KEPT: dict[str, tuple[tuple[TraceKind, ...], str]] = {
    "memories.AuditEvent.object_id": (
        (TraceKind.ID,),
        "the trail says what was done to which object, without its content",
    ),
    "memories.AuditEvent.actor_id": ((TraceKind.ID,), "the run that wrote, of which nothing but the id is left"),
    "memories.WebhookDelivery.data": ((TraceKind.ID,), "other systems are told by it that the person is erased"),
    "memories.DecayPass.reached": ((TraceKind.ID,), "a place in the order of ids, at which a pass goes on"),
    "memories.Operator.first_name": ((TraceKind.WORD,), "staff may be called like the person"),
    "memories.Operator.last_name": ((TraceKind.WORD,), "staff may be called like the person"),
}
# Place → what may be there too, and is reported: the program's names, and those of staff and applications, which the
# person may share ("Europe/Amsterdam", their company), or whose account may be their own.
_NAMED = (TraceKind.WORD, TraceKind.TEXT)
_ANY = (TraceKind.NAME, *_NAMED)
REPORTED: dict[str, tuple[TraceKind, ...]] = {
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
    "memories.ManagementKey.name": _NAMED,
    # An agent of the application, whom the person spoke with, too.
    "memories.APIKey.agent_id": _ANY,
    # An agent that others speak with, or one for which operators have set something.
    "memories.Agent.agent_id": _ANY,
    "memories.Agent.guidance": _NAMED,
    # The application names its groups; those of nobody else go with the person.
    "memories.MemoryGroup.name": _ANY,
    "memories.Operator.username": _ANY,
    "memories.Operator.email": _ANY,
    "memories.Operator.time_zone": _NAMED,
    "memories.EmbeddingSpace.model": _NAMED,
    # A browser of staff, perhaps of the same make.
    "axes.AccessAttempt.user_agent": _NAMED,
}
# Free texts of the person's own cases: the transaction that closes the case empties them.
UNTIL_CLOSED = ("channel", "reference", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome")
# Another person's memory names its readers here: nobody said that, so it goes with the person.
REFERENCES = re.compile(rb'"allowed_users": ?\[[^\]]*\]')
_CASE = re.compile(r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LETTERS = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
# The length that a pickle writes before a text looks like a letter from here on.
_LONG = 48


# Model → columns that hold only what people, their application, a model, or staff in a case or question said.
WORD_COLUMNS: Mapping[str, frozenset[str]] = {
    "memories.EndUser": frozenset({"external_id", "display_name", "metadata"}),
    "memories.Session": frozenset({"external_id", "agent_id"}),
    "memories.Turn": frozenset(
        {"content", "parts", "name", "tool_calls", "tool_call_id", "metadata", "external_id"},
    ),
    "memories.Attachment": frozenset({"name", "media_type", "content"}),
    "memories.Passage": frozenset({"place", "content"}),
    "memories.Fact": frozenset(
        {
            "content",
            "raw",
            "structured",
            "triples",
            "key",
            "value",
            "tags",
            "source_error",
            "agent_id",
            "external_id",
            "document",
            "allowed_roles",
        },
    ),
    "memories.FactEvidence": frozenset({"quote"}),
    "memories.FactRevision": frozenset({"reason"}),
    "memories.Episode": frozenset({"summary", "key_topics", "actions_taken", "outcomes"}),
    "memories.ProfileSection": frozenset({"agent_id", "summary", "document"}),
    "memories.ProfileRevision": frozenset({"agent_id", "before", "after", "reason"}),
    "memories.MemoryFile": frozenset({"agent_id", "path", "content"}),
    "memories.DiaryEntry": frozenset({"agent_id", "topic", "content"}),
    "memories.Trajectory": frozenset(
        {"agent_id", "session_id", "external_id", "task", "family", "outcome_reason", "skills_named"}
    ),
    "memories.TrajectoryStep": frozenset({"tool", "call_id", "arguments", "content"}),
    "memories.SkillText": frozenset({"text"}),
    "memories.SkillTrial": frozenset({"agent_id", "session_id"}),
    "memories.GroupFact": frozenset({"content"}),
    "memories.GroupEvidence": frozenset({"agent_id"}),
    "memories.MemoryGroup": frozenset({"name"}),
    "memories.FileVersion": frozenset({"content", "reason"}),
    "memories.Dream": frozenset({"agent_id", "summary"}),
    "memories.DreamEdit": frozenset({"path", "old_text", "new_text"}),
    "memories.WorkingMemory": frozenset({"summary"}),
    "memories.LoggedContext": frozenset({"agent_id", "query", "memory"}),
    "memories.SentBlock": frozenset({"agent_id", "text"}),
    "memories.GraphEntity": frozenset({"name", "type"}),
    "memories.GraphTriple": frozenset({"agent_id", "predicate"}),
    "memories.StoreItem": frozenset({"namespace", "key", "value", "index_paths"}),
    "memories.ReviewItem": frozenset({"note"}),
    "memories.ReviewNote": frozenset({"text"}),
    "memories.PrivacyCase": frozenset(
        {"channel", "reference", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome"},
    ),
    # A file that waits to be read.
    "memories.ImportPiece": frozenset({"content"}),
    "memories.Import": frozenset({"options", "preview"}),
    # A copy of all that, which names nobody else's rows.
    "memories.PrivacyExportPiece": frozenset({"content"}),
}
# JSON that the hub wrote around such words; their names there are those above, and a few more.
AROUND = frozenset({"memories.FactRevision.before", "memories.FactRevision.after", "memories.IdempotencyRecord.body"})
_WORD_FIELDS = frozenset({"user_id", "session_id", "channel", "reference"}).union(
    *(WORD_COLUMNS[f"memories.{model}"] for model in ("EndUser", "Turn", "Fact", "FactEvidence", "Episode"))
)


def patterns_of(terms: SearchTerms) -> Iterator[TermPattern]:
    """All patterns for the matcher; plain names are left to short_ids."""
    for text in terms.ids:
        one = uuid.UUID(text)
        # As text, as bytes, and as the number that a pickle writes.
        forms = (str(one).encode(), one.hex.encode(), one.bytes, one.bytes[::-1])
        yield from (TermPattern(TraceKind.ID, text, form) for form in forms)
    kinds = {
        TraceKind.NAME: terms.names,
        TraceKind.WORD: terms.words,
        TraceKind.TEXT: (*terms.texts, *terms.vectors),
    }
    for kind, values in kinds.items():
        for value in dict.fromkeys(values):
            if kind is TraceKind.NAME and is_plain(value):
                continue
            yield from (TermPattern(kind, value, form) for form in _written_forms(value) if len(form) >= ANCHOR)


def is_plain(name: str) -> bool:
    """A few letters, or one word of a language ("assistant"): where it occurs it need not mean the person."""
    return len(name.encode()) < ANCHOR or (name.isascii() and name.isalpha())


def _written_forms(value: str) -> set[bytes]:
    """The text as it is and as JSON has it, each also as COPY writes it."""
    plain = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    return {form.encode("utf-8", "replace") for one in plain for form in (one, one.replace("\\", "\\\\"))}


class Judge:
    """Decides by who owns a row today; reads rows, never writes."""

    def __init__(self, terms: SearchTerms, case: PrivacyCase) -> None:
        self.terms, self.tenant_id = terms, case.tenant_id
        self.cases = {str(case.pk), *terms.cases}
        self._gone = frozenset(map(uuid.UUID, terms.ids))
        self.ownership = Ownership()
        living = EndUser.objects.filter(external_id__in=terms.names).exclude(pk__in=terms.ids)
        # Whoever returned under the id; `also_named` has people of other tenants, too.
        self.returned = set(living.filter(tenant=case.tenant_id).values_list("pk", flat=True))
        self.also_named = set(living.values_list("external_id", flat=True))
        self._tenants: dict[uuid.UUID, uuid.UUID | None] = {}

    def look(self, table: SearchedTable, row: Row, wanted: Iterable[TermPattern]) -> Iterator[TraceFinding]:
        """Find these patterns in the row; a value is decoded only when no column has the pattern in plain."""
        owner: Owner | None = None
        for pattern in wanted:
            places = [name for name, value in row.items() if holds(value, pattern)]
            for name in places or [name for name, value in row.items() if _holds_inside(value, pattern)]:
                owner = owner or self.owner_of(table, row)
                place = table.place(name)
                if not self._is_kept(place, row, pattern):
                    yield TraceFinding(place, pattern, self._verdict(place, row[name], pattern, owner), owner)

    def owner_of(self, table: SearchedTable, row: Row) -> Owner:
        return self._owner_among(self.ownership.owners(table, row))

    def owner_of_file(self, name: str) -> Owner:
        """Of an export that was written to a file, by the case that its name begins with."""
        [case] = _CASE.findall(name) or [uuid.UUID(int=0)]
        owners = PrivacyCase.objects.filter(pk=case, type__in=EXPORTING).exclude(end_user=None)
        return self._owner_among(set(owners.values_list("end_user", flat=True)))

    def _owner_among(self, people: set[uuid.UUID]) -> Owner:
        if not people or not people.isdisjoint(self._gone):
            return Owner.NOBODY
        if people <= self.returned:
            return Owner.RETURNED
        return Owner.OTHER_PERSON if self.tenant_id in map(self._tenant_of, people) else Owner.OTHER_TENANT

    def _tenant_of(self, person: uuid.UUID) -> uuid.UUID | None:
        if person not in self._tenants:
            self._tenants[person] = EndUser.objects.filter(pk=person).values_list("tenant", flat=True).first()
        return self._tenants[person]

    def _is_kept(self, place: str, row: Row, pattern: TermPattern) -> bool:
        own_case = place.rpartition(".")[0] == PrivacyCase._meta.label and row["id"].decode() in self.cases
        kept, _reason = KEPT.get(place, ((), ""))
        return pattern.kind in kept or (own_case and place.rpartition(".")[2] in UNTIL_CLOSED)

    def _verdict(self, place: str, value: bytes, pattern: TermPattern, owner: Owner) -> TraceVerdict:
        if owner is Owner.NOBODY and pattern.kind in REPORTED.get(place, ()):
            return TraceVerdict.MENTION
        return verdict(pattern, owner, refers=owner is not Owner.NOBODY and _refers(place, value, pattern))


def verdict(pattern: TermPattern, owner: Owner, *, refers: bool) -> TraceVerdict:
    """An id of the hub is left over, except in somebody's words; what others said stays theirs, and is reported.

    `refers`: the hub itself names the person there.
    """
    if owner is Owner.NOBODY or (pattern.kind is TraceKind.ID and refers):
        return TraceVerdict.HIT
    if pattern.kind in (TraceKind.ID, TraceKind.TEXT):
        # What people of another tenant say is not reported to this one.
        return TraceVerdict.NOTHING if owner is Owner.OTHER_TENANT else TraceVerdict.MENTION
    if pattern.kind is TraceKind.NAME and owner is Owner.OTHER_PERSON:
        return TraceVerdict.HIT if refers else TraceVerdict.MENTION
    return TraceVerdict.NOTHING


def holds(data: bytes, pattern: TermPattern) -> bool:
    """Whether the data has the pattern; short external ids and values only as words of their own."""
    if pattern.kind in (TraceKind.ID, TraceKind.TEXT) or len(pattern.form) >= _LONG:
        return pattern.form in data
    at = data.find(pattern.form)
    while at >= 0:
        end = at + len(pattern.form)
        begins = at == 0 or not {data[at - 1], data[at]} <= _LETTERS
        if begins and (end == len(data) or not {data[end - 1], data[end]} <= _LETTERS):
            return True
        at = data.find(pattern.form, at + 1)
    return False


def _holds_inside(value: bytes, pattern: TermPattern) -> bool:
    return any(holds(layer.data, pattern) for layer in layers(value))


def _refers(place: str, value: bytes, pattern: TermPattern) -> bool:
    """Whether the hub names the person there, and not somebody's words."""
    if place.rpartition(".")[2] == "allowed_users":
        return True
    parts = [layer.data for layer in layers(written_by_hub(place, value))]
    if pattern.kind is not TraceKind.ID:
        parts = [part for data in parts for part in REFERENCES.findall(data)]
    return any(holds(data, pattern) for data in parts)


def written_by_hub(place: str, value: bytes) -> bytes:
    """The value of a column without what somebody said."""
    label, _, column = place.rpartition(".")
    if column in WORD_COLUMNS.get(label, ()):
        return b""
    if place not in AROUND:
        return value
    try:
        content = json.loads(bytes.fromhex(value[2:].decode()) if value.startswith(rb"\x") else value)
    except ValueError:
        return value
    return json.dumps(_without_words(content), ensure_ascii=False).encode("utf-8", "replace")


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_words(one) for name, one in value.items() if name not in _WORD_FIELDS}
    return [_without_words(one) for one in value] if isinstance(value, list) else value
