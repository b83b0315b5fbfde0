"""How the tests speak of pages: addresses, texts as a page shows them, and the query budget of lists."""

from typing import Any

from django.contrib.messages import get_messages
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>{{ 7|add:7 }}'
# As a browser would run them; inside JSON the quotes are escaped, the tags would still be live.
LIVE_TAGS = ("<script>alert", "<img src=x")
LIST_BUDGET = 12
PAGE_BUDGET = 20


def list_of(model: type[Model]) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def page_of(record: Model, verb: str = "change") -> str:
    return reverse(f"admin:{record._meta.app_label}_{record._meta.model_name}_{verb}", args=[record.pk])


def text_of(response: Any) -> str:
    return str(response.content.decode())


def said(response: Any) -> str:
    """The messages of this request, without those before that no page has shown yet."""
    storage: Any = get_messages(response.wsgi_request)
    return " ".join(str(message) for message in storage._queued_messages)


def shows_harmless(response: Any, hostile: str = HOSTILE) -> bool:
    """The text is on the page, and only escaped."""
    page = text_of(response)
    return escape(hostile) in page and not any(tag in page for tag in LIVE_TAGS)


def queries_of(client: Client, address: str) -> int:
    """How many queries the page takes, when it is answered with 200."""
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)
    assert response.status_code == 200
    return len(queries)
