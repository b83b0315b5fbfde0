"""What agents are told: contexts, searches, the memory as a document."""

import re
from dataclasses import replace
from typing import Any

import tiktoken
from hypothesis import strategies as st
from hypothesis.stateful import rule

from memories.api import lookups
from memories.api.v1.memory.serializers import document_of, facts_of, sections_of
from memories.context import context
from memories.context.context import Context, ContextRequest
from memories.context.parts import INCLUDABLE
from memories.curation.statements.documents import import_document
from memories.models import Episode, Fact
from memories.retrieval import search as retrieval
from memories.retrieval.search import KINDS, SearchRequest
from memories.text.memory_block import HEADINGS
from tests.stateful.texts import PHRASES
from tests.stateful.world import KEY, SESSIONS, WHO, World

QUERY = st.sampled_from(["", "", *PHRASES, "???", "城市"])
BUDGET = st.sampled_from([0, 1, 40, 80, 150, 400, 2_000])
LINE = re.compile(r"- [^\n]+|\d{4}-\d\d-\d\d:")
# Cautions of the served gate that belong to kinds of memories.
LEAST_CONFIDENCE = 0.6


class Asking(World):
    """All that is told is within its budget, well-formed, the person's own and fit to be served (I3, I6)."""

    @rule(
        who=WHO,
        query=QUERY,
        budget=BUDGET,
        include=st.sets(st.sampled_from(INCLUDABLE)),
        session=st.sampled_from(["", *SESSIONS]),
        tokenizer=st.sampled_from(["o200k_base", "cl100k_base"]),
    )
    def ask_context(self, who: int, query: str, budget: int, include: set[str], session: str, tokenizer: str) -> None:
        request = ContextRequest(
            self.people[who].marker,
            query=query,
            max_tokens=budget,
            include=frozenset(include),
            session_id=session,
            tokenizer=tokenizer,
        )
        self._check_context(who, request)

    @rule(who=WHO)
    def ask_for_all(self, who: int) -> None:
        """Everything that may be told."""
        self.check_told(who)

    @rule(who=WHO, query=st.sampled_from(PHRASES), kinds=st.sets(st.sampled_from(KINDS), min_size=1))
    def search(self, who: int, query: str, kinds: set[str]) -> None:
        somebody = self.people[who]
        looked_for = SearchRequest(somebody.marker, query, kinds=sorted(kinds), limit=10)
        found = self.do(retrieval.search, tenant=somebody.row.tenant, search=looked_for, now=self.now)
        assert found is not None
        self.check_apart(who, found)
        assert len(found.results) <= 10
        assert not (found.results and (somebody.row.restricted_at or not somebody.row.serve))
        self._check_fit([(one.kind, one.id) for one in found.results])

    @rule(who=WHO, shorter=st.booleans())
    def take_document_home_and_back(self, who: int, shorter: bool) -> None:
        """A document that comes back as it went changes nothing."""
        person = self.people[who].row
        told = lookups.facts(person.tenant).filter(end_user=person, status="active")
        document = document_of(person.profile.all(), list(told.order_by("pk")[: 2 if shorter else None]))
        self.check_apart(who, document)
        before = _versions(person)
        given: dict[str, Any] = {"sections": sections_of(document), "facts": facts_of(document)}
        self.do(import_document, end_user=person, actor=KEY, now=self.now, **given)
        assert _versions(person) == before

    def check_told(self, who: int) -> None:
        include = frozenset(INCLUDABLE) - {"working_memory"}
        request = ContextRequest(self.people[who].marker, max_tokens=8_000, include=include)
        self.people[who].last_memory = self._check_context(who, request).memory

    def _check_context(self, who: int, request: ContextRequest) -> Context:
        person = self.people[who].row
        self.wait()
        told = context.build(tenant=person.tenant, request=request, now=self.now)
        again = context.build(tenant=person.tenant, request=request, now=self.now)
        assert told == again
        assert told.revision == again.revision
        self.check_apart(who, told)
        if person.restricted_at or not person.serve:
            assert (told.memory, told.items, told.dropped, told.messages or []) == ("", [], [], [])
        _check_budget(told)
        _check_form(told.memory)
        self._check_fit([(item["kind"], item["id"]) for item in told.items])
        self._check_smaller(who, request, told)
        return told

    def _check_smaller(self, who: int, request: ContextRequest, told: Context) -> None:
        """Less room, the same lines from the start."""
        smaller = replace(request, max_tokens=request.max_tokens // 2)
        fewer = context.build(tenant=self.people[who].row.tenant, request=smaller, now=self.now)
        _check_budget(fewer)
        assert [item["id"] for item in fewer.items] == [item["id"] for item in told.items][: len(fewer.items)]

    def _check_fit(self, told: list[tuple[str, Any]]) -> None:
        """Nothing pending, rejected, superseded, archived, expired or in the trash is told."""
        facts = Fact.objects.in_bulk([pk for kind, pk in told if kind == "fact"])
        episodes = Episode.objects.in_bulk([pk for kind, pk in told if kind == "episode"])
        assert len(facts) + len(episodes) == sum(kind in ("fact", "episode") for kind, _ in told)
        told_rows: list[Fact | Episode] = [*facts.values(), *episodes.values()]
        for row in told_rows:
            assert row.status == "active"
            assert row.expires_at is None or row.expires_at > self.now
        assert [fact.confidence for fact in facts.values() if fact.confidence < LEAST_CONFIDENCE] == []


def _check_budget(told: Context) -> None:
    counted = len(tiktoken.get_encoding(told.tokenizer).encode(told.memory, disallowed_special=()))
    assert told.token_count == counted <= told.max_tokens


def _check_form(memory: str) -> None:
    if not memory:
        return
    opening, _, zone, *lines, closing = memory.split("\n")
    assert (opening, closing) == ("<memory>", "</memory>")
    assert zone.startswith("Days are of the time zone ")
    assert memory.count("<") == memory.count(">") == 2
    assert [line for line in lines if line not in HEADINGS and not LINE.fullmatch(line)] == []
    headings = [line for line in lines if line in HEADINGS]
    assert headings == sorted(set(headings), key=HEADINGS.index)


def _versions(person: Any) -> list[Any]:
    return list(Fact.objects.filter(end_user=person).order_by("pk").values_list("pk", "version", "status"))
