"""What pages know of who is signed in, the API never sees."""

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from memories.admin.site.middleware import AuthenticationMiddleware, MessageMiddleware, SessionMiddleware
from tests.each import each


@each(("path", "known"), [("/api/v1/context", False), ("/admin/", True), ("/api/docs/", True), ("/", True)])
def test_requests_of_the_api_pass_by(path: str, known: bool) -> None:
    seen: list[HttpRequest] = []

    def view(request: HttpRequest) -> HttpResponse:
        seen.append(request)
        return HttpResponse()

    chain = SessionMiddleware(AuthenticationMiddleware(MessageMiddleware(view)))
    chain(RequestFactory().get(path))
    assert [hasattr(seen[0], name) for name in ("session", "user", "_messages")] == [known] * 3
