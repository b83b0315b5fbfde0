"""docs/search-examples.md says what the hub answers."""

import json
import re
from typing import Any

import pytest

from evals import examples
from memories.models import EndUser
from tests import factories
from tests.api.client import HubClient
from tests.vectors import embed_all

TEXTS = json.loads(examples.TEXTS.read_text(encoding="utf-8"))


class InProcess:
    """The hub of the test, without its processes."""

    def __init__(self, key: str) -> None:
        self._client = HubClient(key)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._client.call(method, path, body)
        assert answer.status_code < 300
        return answer.json()


def first_rows() -> dict[str, tuple[str, str]]:
    """By the title of a section: kind and text of the first result."""
    page = examples.PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^## (.+)\n(?:.*\n)+?\| ---.*\n\| [\d.]+ \| (\w+).*? \| (.+?) \| [^|]+ \|$", page, re.MULTILINE)
    return {title: (kind, text) for title, kind, text in found}


@pytest.mark.django_db
def test_the_first_of_each_is_what_the_page_says() -> None:
    hub = InProcess(factories.api_key(factories.tenant())[1])
    examples.fill(hub, TEXTS)
    # Before there are vectors it is asked by words alone.
    ordered = sorted(TEXTS["questions"], key=lambda one: not one.get("words"))
    answers: dict[str, tuple[str, str]] = {}
    for question in ordered:
        if not question.get("words"):
            embed_all(EndUser.objects.get())
        [best, *_] = examples.ask(hub, question)
        assert bool(best["score_parts"]["vector"]) is not bool(question.get("words"))
        answers[question["title"]] = (best["kind"], best["text"])
    assert answers == first_rows()
    assert len(answers) == len(TEXTS["questions"]) >= 8
