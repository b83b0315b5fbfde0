"""What operators see of upkeep: what a pass of it did, and why there is none."""

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from tests import factories
from tests.admin.pages import page_of, text_of
from tests.forgetting.upkeeping import night, old, passed, stale, switch
from tests.model import install

pytestmark = pytest.mark.django_db


def test_a_pass_shows_what_its_upkeep_did(
    admin: Client, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch(monkeypatch)
    person = factories.end_user()
    before = passed(person)
    gone, *_ = old(person)
    install(settings, monkeypatch).answers.append(stale(1, 99))
    page = text_of(admin.get(page_of(night(person))))
    for told in ("People reviewed by the model", "Outdated facts", "Discarded proposals"):
        assert f"{told}</dt><dd>1</dd>" in page
    assert gone.content in page
    assert "Discarded proposals" not in text_of(admin.get(page_of(before)))


@pytest.mark.parametrize(
    ("is_on", "mode", "told"),
    [
        (False, "scripted", "Upkeep is off"),
        (True, "rules", "Upkeep needs a language model"),
        (True, "scripted", "After a nightly pass the model reviews"),
    ],
)
def test_the_next_pass_says_whether_there_is_any(
    admin: Client, settings: LazySettings, monkeypatch: pytest.MonkeyPatch, is_on: bool, mode: str, told: str
) -> None:
    settings.MEMORYHUB_LLM = mode
    switch(monkeypatch, staleness_review=is_on, merge_crowded=False)
    page = text_of(admin.get(reverse("admin:next_decay_pass", args=[factories.tenant().pk])))
    assert told in page
