"""The verification of an erasure: whether anything was left.

It stays independent of the code that deletes: it shares no query, no table list and no text list with the stores of
the registry, and reads what the database's catalogue lists instead of our models. So an error or a missing table there
shows here.

It reads all tables, planner statistics, running statements, large objects, files, and what the API still answers, and
decodes what is in them. The time grows with the data alone (about 30 MB a second). Rows are read in slices: no lock
that anybody notices, no long snapshot.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.translation import gettext_noop

from memories.context import context, parts
from memories.models import (
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    GraphTriple,
    PrivacyCase,
    ProfileSection,
    Session,
    StoreItem,
    Tenant,
    Turn,
)
from memories.privacy.searching import files, search_terms, short_ids, tables
from memories.privacy.searching.decoding import Layer, layers
from memories.privacy.searching.matching import Matcher
from memories.privacy.searching.search_terms import SearchTerms
from memories.privacy.searching.tables import Column, Row, SearchedTable
from memories.privacy.searching.verdicts import (
    REPORTED,
    Judge,
    Owner,
    TermPattern,
    TraceFinding,
    TraceKind,
    TraceVerdict,
    holds,
    patterns_of,
    verdict,
)
from memories.retrieval import search as retrieval

STATISTICS = "pg_stats"
# ANALYZE of an emptied table leaves the old samples, and removing them would lock the table.
SAMPLED_IDS = {
    "pg_stats:ids": gettext_noop("samples of row ids, without content; those of an emptied table stay until it fills")
}
_SHOWN = ("schemaname", "tablename", "attname", "values")
_STATISTICS = f"""
SELECT schemaname, tablename, attname,
    concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text)
FROM pg_stats WHERE schemaname NOT IN {tables.SYSTEM}
UNION ALL SELECT schemaname, tablename, statistics_name, most_common_vals::text
FROM pg_stats_ext WHERE schemaname NOT IN {tables.SYSTEM}
"""  # noqa: S608 (names of ours)
_VIEWS = (
    ("pg_stat_activity", ("application_name", "query"), "SELECT application_name, query FROM pg_stat_activity"),
    ("pg_largeobject", ("data",), "SELECT lo_get(oid) FROM pg_largeobject_metadata"),
)


# Any word finds what is left of a person; the person's own words are not sent to an embedding model.
QUESTION = "memory"
_Listed = type[Session | Fact | Episode | ExtractionRun | Turn | StoreItem | GraphTriple]
_LISTS: dict[str, _Listed] = {
    "sessions": Session,
    "facts": Fact,
    "episodes": Episode,
    "extractions": ExtractionRun,
    "turns": Turn,
    "store": StoreItem,
    "graph": GraphTriple,
}
SAMPLE = 3000


@dataclass
class Findings:
    """What was read (`bytes` before decoding), and place → rows with a trace, never a value.

    `hits`: what must be gone; `mentions`: what others said; `skipped`: place → why it was not read.
    """

    tables: int = 0
    rows: int = 0
    bytes: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    mentions: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def verify(case: PrivacyCase) -> Findings:
    """Search for the terms that were stored in the case before its person was erased; writes nothing.

    A case without terms is a hit in `needles`: nobody can say that it is clean.
    """
    terms = search_terms.opened(case)
    if terms is None:
        return Findings(hits={"needles": 1})
    search = _TraceSearch(terms, case)
    with tables.servers() as servers:
        for server in servers:
            search.read_tables(server)
            search.read_views(server)
    search.read_files()
    search.hits.update(_answers(terms, case.tenant, case.started_at or case.created_at))
    return search.findings()


class _TraceSearch:
    """One search of everything."""

    def __init__(self, terms: SearchTerms, case: PrivacyCase) -> None:
        self.terms = terms
        self.patterns = list(patterns_of(terms))
        self.matcher = Matcher([one.form for one in self.patterns])
        self.judge = Judge(terms, case)
        self.read = Findings(skipped=files.skipped() | SAMPLED_IDS)
        self.hits: Counter[str] = Counter()
        self.mentions: Counter[str] = Counter()
        # Values that living people have as well, and hits that depend on them: decided when everything is read.
        self.common: set[str] = set()
        self.undecided: list[TraceFinding] = []

    def read_tables(self, server: BaseDatabaseWrapper) -> None:
        found, closed = tables.tables_on(server)
        self.read.skipped |= closed
        for table in found:
            self._read_table(table)
            for column, row, pattern in short_ids.rows_naming(table, self.terms):
                owner = self.judge.owner_of(table, row)
                judged = verdict(pattern, owner, refers=column == "allowed_users")
                self._count([TraceFinding(table.place(column), pattern, judged, owner)])

    def read_views(self, server: BaseDatabaseWrapper) -> None:
        for name, columns, query in (*_VIEWS, (STATISTICS, _SHOWN, _STATISTICS)):
            shown = tuple(Column(column, "", column) for column in columns)
            self._read_table(SearchedTable("", name, shown, query=query, server=server))

    def _read_table(self, table: SearchedTable) -> None:
        self.read.tables += not table.query
        for blocks in tables.slices(table):
            # Judged when the slice has been read: its connection takes no other statement before.
            for line, wanted in list(self._traced_lines(table, blocks)):
                row = table.row(line)
                found = self.judge.look(table, row, [self.patterns[one] for one in wanted])
                self._count(self._in_samples(found, row, table.server) if table.name == STATISTICS else found)

    def _traced_lines(self, table: SearchedTable, blocks: Iterable[bytes]) -> Iterator[tuple[bytes, set[int]]]:
        for block in blocks:
            self.read.rows += 0 if table.query else block.count(b"\n")
            self.read.bytes += len(block)
            yield from self._lines_with_patterns(block, table.label)

    def _lines_with_patterns(self, block: bytes, place: str) -> Iterator[tuple[bytes, set[int]]]:
        """The lines that may hold a trace, each with its patterns."""
        found: dict[int, set[int]] = {}
        for layer in layers(block):
            self._note_skipped(layer, place)
            for at, one in self.matcher.found(layer.data):
                start = block.rfind(b"\n", 0, layer.origin(at)) + 1
                found.setdefault(start, set()).add(one)
        for start, wanted in found.items():
            end = block.find(b"\n", start)
            yield block[start : end if end >= 0 else len(block)], wanted

    def _in_samples(
        self, found: Iterable[TraceFinding], row: Row, server: BaseDatabaseWrapper
    ) -> Iterator[TraceFinding]:
        """The planner's samples of a column: the column decides, and whether others have the value."""
        table = tables.named(row["schemaname"].decode(), row["tablename"].decode(), server)
        place = table.place(row["attname"].decode())
        for one in found:
            also = one.pattern.kind is TraceKind.NAME and one.pattern.value in self.judge.also_named
            # What the column may hold is reported there.
            may = one.pattern.kind in REPORTED.get(place, ())
            if not (also or may) and one.pattern.kind is not TraceKind.ID:
                yield one._replace(place=f"{STATISTICS}:{place}")

    def read_files(self) -> None:
        for place, name, part in files.contents():
            self.read.bytes += len(part)
            found = list(self._patterns_in_file(place, part))
            owner = self.judge.owner_of_file(name) if found and place == files.EXPORTS else Owner.NOBODY
            if owner is not Owner.NOBODY:
                self._count(TraceFinding(place, one, verdict(one, owner, refers=False), owner) for one in found)
            elif found:
                self.hits[place] += 1

    def _patterns_in_file(self, place: str, part: bytes) -> Iterator[TermPattern]:
        for layer in layers(part):
            self._note_skipped(layer, place)
            found = {self.patterns[one] for _at, one in self.matcher.found(layer.data)}
            yield from (one for one in found if holds(layer.data, one))

    def _note_skipped(self, layer: Layer, place: str) -> None:
        if not layer.whole:
            self.read.skipped[place] = gettext_noop("part of it: too large when it is unpacked")

    def _count(self, found: Iterable[TraceFinding]) -> None:
        """Count each place of a row once, by its worst verdict."""
        worst: dict[str, TraceFinding] = {}
        for one in found:
            if one.owner is not Owner.NOBODY:
                self.common.add(one.pattern.value)
            if one.place not in worst or one.verdict.value > worst[one.place].verdict.value:
                worst[one.place] = one
        for place, one in worst.items():
            sampled = place.startswith(STATISTICS) and one.pattern.kind is TraceKind.TEXT
            if one.verdict is TraceVerdict.MENTION:
                self.mentions[place] += 1
            elif one.verdict is not TraceVerdict.HIT:
                continue
            elif one.owner is Owner.NOBODY and (sampled or one.pattern.kind is TraceKind.WORD):
                self.undecided.append(one)
            else:
                self.hits[place] += 1

    def findings(self) -> Findings:
        """A value of the application that living people have, too, counts as theirs wherever a row has no owner."""
        for one in self.undecided:
            counted = self.mentions if one.pattern.value in self.common else self.hits
            counted[one.place] += 1
        self.read.hits, self.read.mentions = dict(self.hits), dict(self.mentions)
        return self.read


def _answers(terms: SearchTerms, tenant: Tenant, now: datetime) -> Counter[str]:
    """`api:…` → how much the hub still answers by the ids that the application has.

    Not of a person who returned under the id: their rows are searched as rows.
    """
    found: Counter[str] = Counter()
    for name, model in _LISTS.items():
        rows = model._default_manager.filter(tenant=tenant, pk__in=terms.ids[:SAMPLE])
        found[f"api:{name}"] = rows.count()
    for name in terms.names:
        if not EndUser.objects.called(tenant, name).exclude(pk__in=terms.ids).exists():
            found.update(_answers_to(name, tenant, now))
    # A place without a hit is no place.
    return +found


def _answers_to(name: str, tenant: Tenant, now: datetime) -> dict[str, int]:
    people = EndUser.objects.called(tenant, name)
    request = context.ContextRequest(user_id=name, include=frozenset(parts.INCLUDABLE))
    built = context.build(tenant=tenant, request=request, now=now, noted=False)
    search = retrieval.SearchRequest(user_id=name, query=QUESTION, kinds=retrieval.KINDS)
    return {
        "api:users": people.count(),
        "api:profile": ProfileSection.objects.filter(end_user__in=people).count(),
        "api:context": len(built.items) + len(built.messages or ()) + bool(built.memory),
        "api:search": len(retrieval.search(tenant=tenant, search=search, now=now, noted=False).results),
    }
