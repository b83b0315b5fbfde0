"""A dry run of extraction: what a run would do, letter by letter, and nothing stored."""

from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings

from memories.capture.ingest import PostedMessage
from memories.exceptions import Conflict, HubBusy, ModelTimeout, PersonRestricted, PreviewRefused
from memories.extraction import consolidation, preview
from memories.extraction.preview import Answered, Preview, Source, Trial
from memories.models import AuditEvent, DailySpending, EndUser, LanguageModel, Role, Session
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
# What a dry run leaves.
KEPT = {AuditEvent, DailySpending}


@pytest.fixture
def session(person: EndUser) -> Session:
    factories.fact(person, "Lives in Leiden", category="knowledge", key="home", value="Leiden")
    said = [("user", "I live in Delft now, not in Leiden. My sister is Ana."), ("assistant", "Noted.")]
    return factories.session(person, said, flush=True)


def stored() -> dict[str, list[dict[str, Any]]]:
    models = [model for model in apps.get_app_config("memories").get_models() if model not in KEPT]
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


def run(source: Source, **trial: Any) -> Preview:
    return preview.run(source=source, trial=Trial(**trial), actor=COMMAND, now=NOW)


def answer(shown: Preview) -> Answered:
    assert shown.answered
    assert not shown.answered.failure
    return shown.answered


def of(session: Session, **over: Any) -> Source:
    return Source(session.tenant, session=preview._with_person(session.pk), **over)


def say(model: Model) -> None:
    moved = candidate("Lives in Delft", key="home", value="Delft", quote="I live in Delft now")
    model.say(moved, candidate("Has a sister called Ana"), candidate("Is in a hurry", confidence=0.1))


def test_it_is_what_a_run_does_and_nothing_stays(model: Model, session: Session, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM_PRICES = (Decimal(2), Decimal(10))
    before = stored()
    say(model)
    tried = answer(run(of(session)))
    assert stored() == before
    assert {(one.verb, one.content, one.status) for one in tried.facts} == {
        ("supersede", "Lives in Leiden", "superseded"),
        ("extract", "Lives in Delft", "active"),
        ("extract", "Has a sister called Ana", "active"),
    }
    assert [(one.content, one.reason) for one in tried.refused] == [("Is in a hurry", "low_confidence")]
    assert (tried.calls, tried.prompt_tokens, tried.cost) == (1, 70, Decimal("0.000210"))
    # The tokens count for the day, and the trail says that somebody tried, without any text.
    assert DailySpending.objects.get().tokens == 77
    event = AuditEvent.objects.get(verb="try_extraction")
    assert (event.counts, event.object_type) == ({"calls": 1, "tokens": 77}, "EndUser")
    assert "Delft" not in str(AuditEvent.objects.values())
    # The same prompt and the same outcome, for good.
    say(model)
    done = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert done
    assert model.prompts[0] == model.prompts[1]
    assert model.instructions[0] == model.instructions[1]
    assert (done.outcome, done.refusals) == (tried.outcome, tried.refusals)


def test_the_prompt_alone_costs_nothing(model: Model, session: Session) -> None:
    shown = preview.show(source=of(session), trial=Trial(guidance="Only pets."), now=NOW)
    assert (shown.first_number, shown.last_number, shown.fed_turns, shown.answered) == (1, 2, 2, None)
    system, user = shown.messages
    assert "Only pets." in system["content"]
    assert "I live in Delft now" in user["content"]
    assert (model.prompts, AuditEvent.objects.count()) == ([], 0)
    # What was extracted is shown again from its beginning; beyond the end there is nothing.
    consolidation.consolidate(session_id=session.pk, now=NOW)
    assert preview.show(source=of(session), trial=Trial(), now=NOW).fed_turns == 2
    assert preview.show(source=of(session, after=2), trial=Trial(), now=NOW).messages == []


def test_a_pasted_text_of_somebody_and_of_nobody(model: Model, session: Session) -> None:
    before, person = stored(), session.end_user
    messages = [PostedMessage(Role.USER, "I live in Delft now. My key is sk-abcdefghijklmnopqrstuvwx1234567890.")]
    for user_id, verbs in ((person.external_id, {"extract", "supersede"}), ("", {"extract"}), ("new", {"extract"})):
        model.say(candidate("Lives in Delft", key="home", value="Delft", quote="I live in Delft now"))
        shown = run(Source(session.tenant, messages=messages, user_id=user_id), model="other", guidance="Only homes.")
        assert {one.verb for one in answer(shown).facts} == verbs
        assert shown.extractor == "llm:other"
        assert "Only homes." in model.instructions[-1]
        # Known facts are those of the person; secrets are cut out as ever.
        assert ("Lives in Leiden" in model.prompts[-1]) == bool(user_id == person.external_id)
        assert "sk-abcdef" not in model.prompts[-1]
        assert stored() == before


def test_somebody_who_comes_while_the_model_thinks_is_a_conflict(model: Model, session: Session) -> None:
    tenant = session.tenant

    def meanwhile() -> dict[str, Any]:
        factories.end_user(tenant, external_id="new")
        return {"new_facts": [candidate("Lives in Delft")]}

    model.answers.append(meanwhile)
    with pytest.raises(Conflict):
        run(Source(tenant, messages=[PostedMessage(Role.USER, "I live in Delft")], user_id="new"))
    assert not Session.objects.filter(end_user__external_id="new").exists()


def test_without_a_model_the_rules_are_tried(settings: LazySettings, session: Session) -> None:
    settings.MEMORYHUB_LLM = "rules"
    before = stored()
    messages = [PostedMessage(Role.USER, "Please remember that I am allergic to peanuts.")]
    shown = run(Source(session.tenant, messages=messages))
    assert (shown.extractor, answer(shown).calls, answer(shown).cost) == ("rules-v1", 0, None)
    assert ["peanuts" in one.content for one in answer(shown).facts] == [True]
    assert stored() == before


def test_what_cannot_be_tried_says_why(model: Model, session: Session, settings: LazySettings) -> None:
    model.answers.append(ModelTimeout("late"))
    failed = run(of(session)).answered
    assert failed
    assert (failed.failure, failed.facts, failed.calls) == ("model_timeout", [], 1)
    for _ in range(preview.AT_ONCE):
        assert preview._running.acquire(blocking=False)
    try:
        with pytest.raises(HubBusy):
            run(of(session))
    finally:
        for _ in range(preview.AT_ONCE):
            preview._running.release()
    LanguageModel.objects.create(tenant=session.tenant, daily_tokens=1, updated_at=NOW)
    say(model)
    answer(run(of(session)))
    with pytest.raises(PreviewRefused, match="cap"):
        run(of(session))
    LanguageModel.objects.all().delete()
    settings.MEMORYHUB_LLM = "off"
    with pytest.raises(PreviewRefused, match="off"):
        run(of(session))
    assert preview.show(source=of(session), trial=Trial(), now=NOW).messages
    EndUser.objects.update(restricted_at=NOW)
    with pytest.raises(PersonRestricted):
        preview.show(source=of(session), trial=Trial(), now=NOW)
