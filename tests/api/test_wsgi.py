"""The WSGI application itself: what happens before any middleware."""

from io import BytesIO
from typing import Any

import pytest
from django.test import RequestFactory

from memoryhub.wsgi import application
from tests.api.conftest import Hub


def answered(hub: Hub, content_type: str) -> int:
    environ: dict[str, Any] = RequestFactory()._base_environ(  # type: ignore[attr-defined]
        REQUEST_METHOD="PUT",
        PATH_INFO="/api/v1/memory",
        QUERY_STRING="user_id=%E5%BC%A0",
        CONTENT_TYPE=content_type,
        CONTENT_LENGTH="2",
        HTTP_AUTHORIZATION=f"Bearer {hub.client.plaintext}",
        **{"wsgi.input": BytesIO(b"{}")},
    )
    return application.get_response(application.request_class(environ)).status_code


@pytest.mark.parametrize("charset", ["hex", "base64", "rot13", "idna", "nonsense", "utf-16"])
def test_a_strange_charset_is_no_500(hub: Hub, charset: str) -> None:
    assert answered(hub, f"application/json; charset={charset}") == 415


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data"])
def test_a_parameter_in_a_strange_charset_is_no_500(hub: Hub, kind: str) -> None:
    assert answered(hub, f"{kind}; boundary*=nonsense''%41") == answered(hub, kind)
    assert answered(hub, kind) < 500
