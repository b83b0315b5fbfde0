"""What of an answer the content policy takes out, through whole attempts: with a model, and with the rules."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.db.models.functions import Now

from memories.curation.change_sets import Changes
from memories.curation.facts.approving import approve_suggestion
from memories.curation.facts.editing import correct_fact
from memories.curation.graph.deciding import TripleCorrection, correct_triple
from memories.curation.graph.stating import TripleRelation
from memories.curation.review.decisions import approve_edited
from memories.curation.running_summaries import rewrite_summary
from memories.curation.tenants.content_policy import put_policy
from memories.episodes import compaction
from memories.exceptions import ContentForbidden
from memories.extraction import consolidation
from memories.llm import embeddings
from memories.models import (
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactRevision,
    PolicyDrop,
    ProfileSection,
    Tenant,
    WorkingMemory,
)
from tests import factories, vectors
from tests.factories import COMMAND, NOW, STAFF
from tests.model import Model, candidate
from tests.reconcile.reconciling import attempt

SAID = (
    ("user", "I live in Leiden and I have asthma. I collect old fountain pens, and I vote at every chance I get."),
    ("assistant", "Noted."),
)
CATEGORIES: list[Any] = [{"name": "health"}, {"name": "pens", "words": [], "not_allowed": [], "allowed": []}]


@pytest.fixture
def person(db: None) -> EndUser:
    tenant = factories.tenant()
    put_policy(tenant=tenant, given=CATEGORIES, actor=COMMAND, now=NOW)
    return factories.end_user(tenant, external_id="u1")


def counts() -> dict[tuple[str, str], int]:
    return {(row.category, row.road): row.count for row in PolicyDrop.objects.all()}


def test_a_model_is_told_the_policy_and_what_falls_under_it_is_dropped(model: Model, person: EndUser) -> None:
    section = {"summary": "Lives in Leiden. Has asthma.", "should_update": True}
    run = attempt(
        model,
        person,
        SAID,
        candidate("Has asthma", forbidden=None),
        candidate("Lives in Leiden", quote="I live in Leiden and I have asthma"),
        candidate("Collects old things to write with", forbidden="Pens"),
        candidate("Votes at every chance", forbidden="no such category"),
        profile={"personal_context": section},
    )
    assert run.refusals["content_policy"] == 2
    assert set(Fact.objects.values_list("content", flat=True)) == {"Lives in Leiden", "Votes at every chance"}
    assert ProfileSection.objects.get(section="personal_context").summary == "Lives in Leiden."
    assert counts() == {("health", "extraction"): 1, ("health", "profile"): 1, ("pens", "extraction"): 1}
    assert not any("asthma" in str(row) for row in [*FactRevision.objects.values(), *Fact.objects.values()])
    prompt = model.instructions[0]
    assert "- pens" in prompt
    assert "- health: Illnesses" in prompt
    assert run.prompt_version.startswith("memory_update-5p1")


def test_a_policy_that_came_while_the_model_thought_counts(model: Model, person: EndUser) -> None:
    tenant = person.tenant
    put_policy(tenant=tenant, given=[], actor=COMMAND, now=NOW)

    def meanwhile() -> Any:
        put_policy(tenant=Tenant.objects.get(pk=tenant.pk), given=[{"name": "health"}], actor=COMMAND, now=NOW)
        return {"new_facts": [candidate("Has asthma"), candidate("Lives in Leiden")]}

    model.answers.append(meanwhile)
    session = factories.session(person, SAID, flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert isinstance(run, ExtractionRun)
    assert (run.refusals, Fact.objects.get().content) == ({"content_policy": 1}, "Lives in Leiden")
    assert "p1" not in run.prompt_version


def test_a_policy_that_came_while_the_model_compared_counts(model: Model, person: EndUser) -> None:
    tenant = person.tenant
    put_policy(tenant=tenant, given=[], actor=COMMAND, now=NOW)
    factories.fact(person, "Likes green tea daily")
    vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))

    def meanwhile() -> Any:
        put_policy(tenant=Tenant.objects.get(pk=tenant.pk), given=[{"name": "health"}], actor=COMMAND, now=NOW)
        return {"judgements": []}

    model.say(candidate("Likes green tea"), candidate("Has asthma"))
    model.answers += [meanwhile, {"judgements": []}]
    session = factories.session(person, [("user", "I like green tea, I have asthma"), ("assistant", "ok")], flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert isinstance(run, ExtractionRun)
    assert (run.status, run.refusals["content_policy"]) == ("committed", 1)
    assert len(model.prompts) >= 2
    assert Fact.objects.filter(content="Likes green tea").exists()
    assert not Fact.objects.filter(content="Has asthma").exists()


def test_what_an_operator_approves_rewrites_or_corrects_is_judged(person: EndUser) -> None:
    changes = Changes(actor=STAFF, now=NOW)
    for text, is_allowed in (("Has asthma", False), ("Lives in Leiden", True)):
        waiting = factories.fact(person, text, status="pending")
        with transaction.atomic():
            if is_allowed:
                approve_suggestion(waiting, changes)
            else:
                with pytest.raises(ContentForbidden):
                    approve_suggestion(waiting, changes)
        waiting.refresh_from_db()
        assert (waiting.status == "active") == is_allowed
    session = factories.session(person, SAID)
    WorkingMemory.objects.filter(pk=session.pk).update(summary="They talked.")
    with pytest.raises(ContentForbidden):
        rewrite_summary(session_id=session.pk, summary="The user has asthma.", actor=STAFF, now=NOW)
    rewrite_summary(session_id=session.pk, summary="They talked of Leiden.", actor=STAFF, now=NOW)
    for text, is_allowed in (("The user has asthma.", False), ("They spoke of Leiden.", True)):
        poor = factories.review_item(None, episode=factories.episode(factories.session(person), status="pending"))
        if is_allowed:
            approve_edited(item_id=poor.pk, changes={"summary": text}, actor=STAFF, now=NOW)
        else:
            with pytest.raises(ContentForbidden):
                approve_edited(item_id=poor.pk, changes={"summary": text}, actor=STAFF, now=NOW)
    triple = factories.triple(person, "user", "is", "tall")
    for said, is_allowed in (("asthmatic", False), ("short", True)):
        correction = TripleCorrection(TripleRelation("user", "is", said), None, None)
        if is_allowed:
            correct_triple(triple_id=triple.pk, correction=correction, actor=STAFF, now=NOW)
        else:
            with pytest.raises(ContentForbidden):
                correct_triple(triple_id=triple.pk, correction=correction, actor=STAFF, now=NOW)
    # What is stored since before may be corrected, though its key stays.
    old = factories.fact(person, "Owns nine pens", key="pens", value="nine")
    named: dict[str, Any] = {"fact_id": old.pk, "tenant": None, "reason": "", "actor": STAFF, "now": NOW}
    with pytest.raises(ContentForbidden):
        correct_fact(content="Owns ten pens", **named)
    assert correct_fact(content="Likes tea", **named).content == "Likes tea"


def test_episodes_and_summaries_lose_the_sentences_that_say_it(model: Model, person: EndUser) -> None:
    said = [(role, f"{role} {number}") for number in range(1, 13) for role in ("user", "assistant")]
    told = {"summary": "They spoke of user 1. The user has asthma.", "key_topics": ["asthma", "user 2"]}
    model.sessions.append({"summary": "They spoke of user 1. The user has asthma."})
    model.episodes.append({**told, "actions_taken": [], "outcomes": [], "importance": 0.5, "quality": 0.9})
    session = factories.session(person, said)
    WorkingMemory.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(seconds=1))
    assert compaction.compact(session_id=session.pk, now=NOW)
    kept = WorkingMemory.objects.get(pk=session.pk)
    made = Episode.objects.get()
    assert "asthma" not in f"{kept.summary} {made.summary} {made.key_topics}"
    assert "user 1" in kept.summary
    assert counts()["health", "episode"] >= 1


def test_the_rules_drop_it_too(person: EndUser, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    said = (("user", "Remember that I have asthma."), ("assistant", "ok"), ("user", "Remember that I live in Leiden."))
    session = factories.session(person, said, flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert isinstance(run, ExtractionRun)
    assert run.refusals["content_policy"] == 1
    assert not Fact.objects.filter(content__icontains="asthma").exists()
    assert Fact.objects.filter(content__icontains="Leiden").exists()
