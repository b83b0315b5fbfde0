"""Whether an erasure left anything: by other code than deleted it, from the database's catalogue instead of our models.

All tables, planner statistics, running statements, large objects, files and the hub's own answers are read; what is in
them is decoded as far as anybody knows how. The time grows with the data alone (about 30 MB a second). Rows are read in
slices: no lock that anybody feels, no snapshot that lasts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from memories.models import PrivacyCase
from memories.privacy.searching import answers, kept_files, needles, short_names, tables
from memories.privacy.searching.decoding import Layer, layers
from memories.privacy.searching.judging import (
    TOLD,
    Found,
    Judge,
    Kind,
    Sought,
    Verdict,
    Whose,
    all_sought,
    holds,
    verdict,
)
from memories.privacy.searching.matching import Matcher
from memories.privacy.searching.needles import Needles
from memories.privacy.searching.tables import Column, Row, Table

STATISTICS = "pg_stats"
# ANALYZE of a table that was emptied leaves the old samples, and nobody can take them away without locking it.
SAMPLED_IDS = {"pg_stats:ids": "samples of row ids, without content; those of an emptied table stay until it fills"}
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


@dataclass
class Findings:
    """What was read (`bytes` before decoding), and place → rows that hold something, never a value.

    `hits`: what ought to be gone; `mentions`: what others said; `skipped`: place → why nobody looked there.
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
    """Look for what was put into the case before its person was erased; writes nothing.

    Nothing to look for is a hit in `needles`: nobody can say that it is clean.
    """
    sought = needles.opened(case)
    if sought is None:
        return Findings(hits={"needles": 1})
    search = _Search(sought, case)
    search.read_tables()
    search.read_views()
    search.read_files()
    for place, count in answers.told(sought, case.tenant, case.started_at or case.created_at).items():
        search.hits[place] += count
    return search.findings()


class _Search:
    """One reading of everything."""

    def __init__(self, sought: Needles, case: PrivacyCase) -> None:
        self.needles = sought
        self.sought = list(all_sought(sought))
        self.matcher = Matcher([one.form for one in self.sought])
        self.judge = Judge(sought, case)
        self.read = Findings(skipped=kept_files.skipped() | SAMPLED_IDS)
        self.hits: Counter[str] = Counter()
        self.mentions: Counter[str] = Counter()
        # Values that living people have as well; what that makes of a place is known when all is read.
        self.common: set[str] = set()
        self.open: list[Found] = []

    def read_tables(self) -> None:
        found, closed = tables.tables()
        self.read.skipped |= closed
        for table in found:
            self._read(table)
            for column, row, sought in short_names.rows_naming(table, self.needles):
                whose = self.judge.whose(table, row)
                judged = verdict(sought, whose, refers=column == "allowed_users")
                self._count([Found(table.place(column), sought, judged, whose)])

    def read_views(self) -> None:
        for name, columns, query in _VIEWS:
            self._read(Table("", name, tuple(Column(column, "", column) for column in columns), query=query))
        shown = tuple(Column(column, "", column) for column in _SHOWN)
        self._read(Table("", STATISTICS, shown, query=_STATISTICS))

    def read_files(self) -> None:
        for place, name, part in kept_files.contents():
            self.read.bytes += len(part)
            found = list(self._in_file(place, part))
            whose = self.judge.whose_file(name) if found and place == kept_files.EXPORTS else Whose.NOBODYS
            if whose is not Whose.NOBODYS:
                self._count(Found(place, one, verdict(one, whose, refers=False), whose) for one in found)
            elif found:
                self.hits[place] += 1

    def findings(self) -> Findings:
        """Values of the application that living people have, too, are theirs wherever nobody is named."""
        for one in self.open:
            counted = self.mentions if one.sought.value in self.common else self.hits
            counted[one.place] += 1
        self.read.hits, self.read.mentions = dict(self.hits), dict(self.mentions)
        return self.read

    def _read(self, table: Table) -> None:
        self.read.tables += not table.query
        for block in tables.blocks(table):
            self.read.rows += 0 if table.query else block.count(b"\n")
            self.read.bytes += len(block)
            for line, wanted in self._lines(block, table.label):
                row = table.row(line)
                found = self.judge.look(table, row, [self.sought[one] for one in wanted])
                self._count(self._sampled(found, row) if table.name == STATISTICS else found)

    def _sampled(self, found: Iterable[Found], row: Row) -> Iterator[Found]:
        """Of what the planner keeps: the column that it is a sample of decides, and who else has the value."""
        table = Table(row["schemaname"].decode(), row["tablename"].decode(), ())
        place = table.place(row["attname"].decode())
        for one in found:
            also = one.sought.kind is Kind.NAME and one.sought.value in self.judge.also_called
            # What may stand in the column is told of there.
            may = one.sought.kind in TOLD.get(place, ())
            if not (also or may) and one.sought.kind is not Kind.ID:
                yield one._replace(place=f"{STATISTICS}:{place}")

    def _in_file(self, place: str, part: bytes) -> Iterator[Sought]:
        for layer in layers(part):
            self._note(layer, place)
            found = {self.sought[one] for _at, one in self.matcher.found(layer.data)}
            yield from (one for one in found if holds(layer.data, one))

    def _note(self, layer: Layer, place: str) -> None:
        if not layer.whole:
            self.read.skipped[place] = "part of it: too large when it is unpacked"

    def _lines(self, block: bytes, place: str) -> Iterator[tuple[bytes, set[int]]]:
        """The lines that may hold something, with what."""
        found: dict[int, set[int]] = {}
        for layer in layers(block):
            self._note(layer, place)
            for at, one in self.matcher.found(layer.data):
                start = block.rfind(b"\n", 0, layer.origin(at)) + 1
                found.setdefault(start, set()).add(one)
        for start, wanted in found.items():
            end = block.find(b"\n", start)
            yield block[start : end if end >= 0 else len(block)], wanted

    def _count(self, found: Iterable[Found]) -> None:
        """Each place of a row once."""
        worst: dict[str, Found] = {}
        for one in found:
            if one.whose is not Whose.NOBODYS:
                self.common.add(one.sought.value)
            if one.place not in worst or one.verdict.value > worst[one.place].verdict.value:
                worst[one.place] = one
        for place, one in worst.items():
            if one.verdict is Verdict.MENTION:
                self.mentions[place] += 1
            elif one.verdict is Verdict.HIT:
                self._hit(one)

    def _hit(self, one: Found) -> None:
        sampled = one.place.startswith(STATISTICS) and one.sought.kind is Kind.TEXT
        if one.whose is Whose.NOBODYS and (sampled or one.sought.kind is Kind.WORD):
            self.open.append(one)
        else:
            self.hits[one.place] += 1
