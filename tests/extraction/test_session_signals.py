"""Signs in what a person says: told to the caller, kept with the batch, handed to the model, gone with it."""

from typing import Any

import pytest

from memories.capture import ingest
from memories.capture.ingest import PostedMessage, Receipt
from memories.extraction import consolidation
from memories.models import EndUser, SessionQueue
from tests.factories import NOW
from tests.model import Model

pytestmark = pytest.mark.django_db
PREFERS = ["I prefer tea to coffee.", "我喜欢喝茶，不喜欢咖啡。"]
PLAIN = ("user", "What is the weather in Leiden?")


def post(person: EndUser, *said: tuple[str, str], flush: bool = False, **over: Any) -> Receipt:
    messages = [PostedMessage(role, text, **over) for role, text in said]
    given: dict[str, Any] = {"user_id": person.external_id, "session_id": "s1", "agent_id": ""}
    return ingest.store_turns(tenant=person.tenant, messages=messages, flush=flush, **given)


def kept() -> list[str]:
    return SessionQueue.objects.get().signals


@pytest.mark.parametrize("text", PREFERS)
def test_told_and_kept(model: Model, person: EndUser, text: str) -> None:
    assert post(person, ("user", text)).signals == ["preference"]
    assert kept() == ["preference"]


def test_gathered_over_posts(model: Model, person: EndUser) -> None:
    post(person, ("user", PREFERS[0]))
    assert post(person, ("user", "我的目标是学会中文。")).signals == ["goal"]
    assert kept() == ["goal", "preference"]


@pytest.mark.parametrize("text", PREFERS)
def test_of_the_person_alone(model: Model, person: EndUser, text: str) -> None:
    assert post(person, ("assistant", text), ("tool", text), PLAIN).signals == []
    assert post(person, ("user", text), metadata={"hide_from_ui": True}).signals == []
    assert kept() == []


def test_of_the_last_six_alone(model: Model, person: EndUser) -> None:
    said = ("user", PREFERS[0])
    assert post(person, said, *[PLAIN] * 6).signals == []
    assert post(person, said, *[PLAIN] * 5).signals == ["preference"]


def test_a_duplicate_adds_none(model: Model, person: EndUser) -> None:
    post(person, ("user", PREFERS[0]), external_id="m1")
    SessionQueue.objects.update(signals=[])
    post(person, ("user", PREFERS[0]), external_id="m1", flush=True)
    assert kept() == []


def test_the_model_is_told_and_they_go_with_the_batch(model: Model, person: EndUser) -> None:
    receipt = post(person, ("user", PREFERS[0]), flush=True)
    assert receipt.session
    consolidation.consolidate(session_id=receipt.session.pk, now=NOW)
    assert "preference" in model.prompts[0].lower()
    assert kept() == []


@pytest.mark.parametrize(("text", "left"), [(PREFERS[0], ["preference"]), (PREFERS[1], ["preference"]), (PLAIN[1], [])])
def test_what_comes_meanwhile_stays(model: Model, person: EndUser, text: str, left: list[str]) -> None:
    receipt = post(person, ("user", "My goal is to learn Dutch."), flush=True)
    assert receipt.session

    def meanwhile() -> dict[str, Any]:
        post(person, ("user", text))
        return {"new_facts": []}

    model.answers.append(meanwhile)
    consolidation.consolidate(session_id=receipt.session.pk, now=NOW)
    assert kept() == left
