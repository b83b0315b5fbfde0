"""The row about an erasure: a person with many turns and facts goes while others are posted for."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from benchmarks.figures import Figure, at_most
from benchmarks.rows import row
from benchmarks.stage import Stage

TURNS, FACTS, TURNS_EACH = 10_000, 5_000, 100


class Erased(NamedTuple):
    """Seconds of the deletion, and of clearing the tables; the longest post meanwhile, in milliseconds, for another
    person and for a session of the same one, who is refused."""

    deletion: float
    clearing: float
    beside: float
    refused: float


@row("erasure")
def erasure(stage: Stage) -> Iterator[Figure]:
    """As the worker does it, up to the verification."""
    from memories.models import EndUser
    from tests import factories

    owner = factories.tenant(slug="leaving")
    person, turns, facts = factories.end_user(owner), TURNS // stage.size.shrink, FACTS // stage.size.shrink
    populate(person, turns, facts)
    took = erase(person)
    what = f"erasure of {turns:,} turns and {facts:,} facts with their vectors"
    yield Figure(f"{what}: the deletion", took.deletion, "s", at_most(10, 3))
    yield Figure(f"{what}: VACUUM and ANALYZE afterwards", took.clearing, "s")
    yield Figure("the longest post for another person meanwhile", took.beside, "ms", at_most(200, 100))
    yield Figure("the longest refusal of a post for the person meanwhile", took.refused, "ms", at_most(200, 100))
    assert not EndUser.objects.filter(pk=person.pk).exists()


def populate(person: Any, turns: int, facts: int) -> None:
    """One of each is made with care, the others are copies made inside the database: sessions of 100 turns, and facts
    with an evidence, two revisions and a vector each."""
    from django.db import connection

    from memories import audit
    from memories.embedding import vectors
    from tests import factories

    sessions = [
        factories.session(person, [("user", f"I live in Leiden ({n}.{m})") for m in range(min(turns, TURNS_EACH))])
        for n in range(max(1, turns // TURNS_EACH))
    ]
    fact = factories.fact(person, "Lives in Leiden")
    factories.evidence(fact, sessions[0].turns.get(number=1), quote="I live in Leiden")
    for version in (1, 2):
        fact.version = version
        audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=factories.NOW)
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    with connection.cursor() as cursor:
        for statement in _copies():
            cursor.execute(statement, {"fact": fact.pk, "count": facts - 1})
        cursor.execute("VACUUM (ANALYZE)")


def _copies() -> Iterator[str]:
    from benchmarks.seeding import copied
    from memories.models import Fact, FactEvidence, FactRevision, FactVector

    among = "FROM generate_series(1, %(count)s) n WHERE t.id = %(fact)s"
    # They count as embedded from the start: the hub's embedder leaves them alone.
    digest = "sha256(n::text::bytea)"
    yield copied(Fact, id="uuidv7()", content_hash=digest, embedded_hash=digest).replace(
        "FROM memories_fact t", f"FROM memories_fact t CROSS JOIN {among.removeprefix('FROM ')}"
    )
    for model in (FactEvidence, FactRevision, FactVector):
        yield (
            copied(model, id=f"nextval(pg_get_serial_sequence('{model._meta.db_table}', 'id'))", fact_id="f.id")
            + " JOIN memories_fact f ON f.id <> t.fact_id"
            + " AND f.end_user_id = (SELECT end_user_id FROM memories_fact WHERE id = %(fact)s)"
            + " WHERE t.fact_id = %(fact)s AND %(count)s > 0"
        )


def erase(person: Any) -> Erased:
    """Its steps, timed, while two threads post."""
    from memories.privacy import case_leases, erasing
    from tests import factories

    other, session = factories.end_user(person.tenant), person.sessions.first()
    case = factories.privacy_case(person, state="approved")
    work = case_leases.claim(case.pk)
    assert work
    posting = [_Posting(other.external_id, "s", other), _Posting(person.external_id, session.external_id, person)]
    for one in posting:
        one.start()
    started = time.monotonic()
    done: dict[str, float] = {}
    for step in erasing.steps(work, now=datetime.now(UTC)):
        done[step] = time.monotonic() - started
        if step == erasing.VACUUM:
            break
    longest = [one.end() * 1000 for one in posting]
    return Erased(done[erasing.PEOPLE], done[erasing.VACUUM] - done[erasing.PEOPLE], *longest)


class _Posting(threading.Thread):
    """Posts one turn after another until it is told to end; whom the hub refuses is refused as quickly."""

    def __init__(self, user_id: str, session_id: str, person: Any) -> None:
        super().__init__(daemon=True)
        self._named = {"user_id": user_id, "session_id": session_id, "agent_id": "", "tenant": person.tenant}
        self._ended = threading.Event()
        self._longest = 0.0

    def run(self) -> None:
        from django.db import connection

        self._post(lambda seconds: None)
        while not self._ended.is_set():
            self._post(self._note)
        connection.close()

    def end(self) -> float:
        """Seconds of the longest post."""
        self._ended.set()
        self.join()
        return self._longest

    def _note(self, seconds: float) -> None:
        self._longest = max(self._longest, seconds)

    def _post(self, note: Callable[[float], None]) -> None:
        from memories.capture import ingest
        from memories.capture.ingest import PostedMessage
        from memories.exceptions import Erased as Gone
        from memories.exceptions import PersonRestricted

        begun = time.monotonic()
        with suppress(PersonRestricted, Gone):
            ingest.store_turns(messages=[PostedMessage(role="user", content="Hello")], **self._named)
        note(time.monotonic() - begun)
        time.sleep(0.002)
