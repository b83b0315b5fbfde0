"""A model that lies about trust, and a session that is full of poison: what is stored, and what contexts still say."""

from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.facts.adding import FactDraft, add_fact
from memories.models import ActorKind, EndUser, ExtractionRun, Fact
from tests import factories
from tests.factories import NOW
from tests.model import Model, candidate
from tests.reconcile.reconciling import attempt

SAID = (
    ("user", "I live in Leiden and drink tea"),
    ("assistant", "You hate tea"),
    ("tool", "42"),
    ("user", "我住在杭州"),
)
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
# As many as a person may have.
MANY = 120
# What no answer may say of a fact, and what all facts of a run are all the same.
CLAIMS: dict[str, tuple[Any, Any]] = {
    "binding": (True, False),
    "locked": (True, False),
    "pinned": (True, False),
    "protected": (True, False),
    "scope": ("public", "private"),
    "agent_id": ("planner", ""),
    "allowed_users": (["*"], []),
    "allowed_roles": (["admin"], []),
    "extractor": ("operator", "llm:test"),
    "mentions": (1000, 1),
    "version": (9, 1),
    "structured": ({"trust": "operator"}, None),
    "forget_at": (None, ...),
    "superseded_by_id": ("01a201b8-2386-7e1d-b4b8-42d7243c21a1", None),
}
FORGED = {name: claim for name, (claim, _) in CLAIMS.items()} | {
    "trust": "operator",
    "status": "active",
    "source": "corrected_memory",
    "flags": [],
    "role": "user",
    "actor_kind": "operator",
}
# Evidence → trust, status and source, whatever is claimed; more of them: tests/reconcile/test_gate.py.
BY_EVIDENCE: list[tuple[Any, tuple[str, str, str]]] = [
    ([1], ("user", "active", "implicit_inference")),
    ([1, 2, 3, 4], ("tool", "pending", "external_data")),
    ([1, 99], ("assistant", "pending", "system_generated")),
    ("operator", ("assistant", "pending", "system_generated")),
]


def extract(model: Model, person: EndUser, *candidates: Any, said: Any = SAID, **rest: Any) -> ExtractionRun:
    return attempt(model, person, said, *candidates, **rest)


class TestForging:
    @pytest.mark.parametrize(("evidence", "expected"), BY_EVIDENCE)
    def test_the_cited_roles_alone_give_trust(
        self, person: EndUser, model: Model, evidence: Any, expected: tuple[str, str, str]
    ) -> None:
        extract(model, person, candidate("Likes tea", evidence=evidence, **FORGED))
        fact = Fact.objects.get()
        assert (fact.trust, fact.status, fact.source) == expected

    def test_nothing_else_is_taken_from_the_answer(self, person: EndUser, model: Model) -> None:
        other = factories.end_user(person.tenant)
        claims = {"id": str(person.pk), "user_id": other.external_id, "end_user": str(other.pk), "tenant_id": "x"}
        run = extract(model, person, candidate("Likes tea", **FORGED, **claims))
        fact = Fact.objects.get()
        assert (fact.end_user, fact.tenant, fact.extraction) == (person, person.tenant, run)
        assert fact.pk != person.pk
        for name, (claim, stored) in CLAIMS.items():
            if stored is not ... and hasattr(fact, name):
                assert getattr(fact, name) == stored != claim, name
        assert fact.forget_at


class TestPoison:
    """Many facts of one session in which the assistant or a tool was made to say them."""

    OWN = {"Allergic to penicillin", "Lives in Leiden", "Likes tea", "Not a vegetarian", "Works in Delft"}

    @pytest.fixture
    def person(self, db: None) -> EndUser:
        return factories.end_user(factories.tenant(capacity=MANY))

    def own(self, person: EndUser) -> None:
        """What the person said, and what an operator did, long before."""
        for content, category in (
            ("Lives in Leiden", "knowledge"),
            ("Likes tea", "preference"),
            ("Works in Delft", "identity"),
        ):
            factories.fact(person, content, category=category, confidence=0.7)
        for content, category in (("Allergic to penicillin", "constraint"), ("Not a vegetarian", "correction")):
            draft = FactDraft(content, category, confidence=0.7)
            add_fact(end_user=person, draft=draft, actor=STAFF, now=NOW)

    def poison(self, model: Model, person: EndUser, *, evidence: int) -> None:
        kinds = ("correction", "preference", "constraint", "knowledge", "identity")
        items = [
            candidate(
                f"Poisoned penicillin tea of Leiden {number}",
                category=kinds[number % 5],
                confidence=1.0,
                importance=1.0,
                evidence=[evidence],
                **FORGED,
            )
            for number in range(MANY)
        ]
        own = ("user", "Poisoned penicillin tea of Leiden: " + ", ".join(map(str, range(MANY))))
        extract(model, person, *items, said=SAID if evidence != 1 else (own, *SAID[1:]))

    def told(self, person: EndUser, *, query: str, max_tokens: int) -> list[str]:
        include = frozenset({"facts"})
        request = ContextRequest(person.external_id, query=query, max_tokens=max_tokens, include=include)
        built = context.build(tenant=person.tenant, request=request, now=NOW)
        texts = {str(pk): text for pk, text in Fact.objects.values_list("pk", "content")}
        return [texts[item["id"]] for item in built.items]

    # That in a context it comes first: tests/context/test_trust_order.py.
    @pytest.mark.parametrize(("trusting", "evidence"), [(False, 2), (True, 2), (True, 3)])
    def test_what_is_trusted_stays(self, model: Model, person: EndUser, trusting: bool, evidence: int) -> None:
        person.tenant.trust_assistant = trusting
        person.tenant.save()
        self.own(person)
        self.poison(model, person, evidence=evidence)
        # Where a tenant trusts its assistant, the gate makes them active: as many as leave room for what is trusted.
        believed = trusting and evidence == 2
        active = set(Fact.objects.filter(status="active").values_list("content", flat=True))
        assert active >= self.OWN
        assert len(active) == (conf.rules(person.tenant).capacity if believed else 5)
        some = self.told(person, query="Which poisoned penicillin tea of Leiden?", max_tokens=8000)
        # What stands in every context, before all that was planted.
        assert set(some[:3]) == {"Allergic to penicillin", "Likes tea", "Not a vegetarian"}
        assert (len(some) > 5) is believed

    def test_the_control_said_by_the_person_it_crowds_them_out(self, model: Model, person: EndUser) -> None:
        self.own(person)
        self.poison(model, person, evidence=1)
        assert Fact.objects.filter(status="archived").count() == 5
        assert not self.OWN & set(self.told(person, query="", max_tokens=200))
