"""decay --upkeep: a night's upkeep here and now, and why there may be none."""

from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from memories.exceptions import ModelRateLimited
from memories.models import DecayPass, EndUser, Fact
from tests import factories
from tests.factories import NOW
from tests.forgetting.upkeeping import many, merged, old, stale, switch
from tests.model import Model, install

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    switch(monkeypatch)
    return install(settings, monkeypatch)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme"))


def say(*arguments: str) -> str:
    said = StringIO()
    call_command("decay", "--tenant", "acme", "--now", NOW.isoformat(), *arguments, stdout=said)
    return said.getvalue()


def test_it_says_counts_alone(person: EndUser, model: Model) -> None:
    old(person)
    many(person)
    model.answers.append({**merged(4, 5), "stale": stale(1)["stale"]})
    said = say("--upkeep")
    assert "Upkeep: 1 reviewed, 1 stale, 1 merged, 0 upkeep_failures, 0 upkeep_refused." in said
    assert "tea" not in said
    row = DecayPass.objects.get()
    assert (row.trigger, row.upkeep_open) == ("command", False)


def test_without_the_flag_nobody_is_asked(person: EndUser, model: Model) -> None:
    old(person)
    assert "Upkeep" not in say()
    assert model.prompts == []


def test_switched_off_nothing_is_done(person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    switch(monkeypatch, staleness_review=False, merge_crowded=False)
    with pytest.raises(CommandError, match="Upkeep is off"):
        say("--upkeep")
    assert not DecayPass.objects.exists()


def test_without_a_model_it_says_so(person: EndUser, model: Model, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = "rules"
    with pytest.raises(CommandError, match="needs a language model"):
        say("--upkeep")


def test_an_endpoint_that_rests_leaves_it_to_a_worker(person: EndUser, model: Model) -> None:
    for one in (person, factories.end_user(person.tenant)):
        old(one)
    model.answers.append(ModelRateLimited(retry_after=60))
    with pytest.raises(CommandError, match="a worker goes on"):
        say("--upkeep")
    assert DecayPass.objects.get().upkeep_open
    assert Fact.objects.filter(status="active").count() == 6
