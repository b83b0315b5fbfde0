"""Which language a page speaks: the operator's own choice, else what the browser asks for."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.cache import patch_vary_headers

from memories.models import Operator

# The probes must answer while the database does not, and the API speaks English whoever asks.
PAGES = "/admin/"
View = Callable[[HttpRequest], HttpResponseBase]


class LanguageMiddleware:
    """The language in force while a page is made."""

    def __init__(self, get_response: View) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(PAGES):
            return self.get_response(request)
        # Put back afterwards: the thread's next request may be one of the API's.
        with translation.override(language_of(request)):
            response = self.get_response(request)
            response.headers["Content-Language"] = translation.get_language() or ""
        patch_vary_headers(response, ("Accept-Language",))
        return response


def language_of(request: HttpRequest) -> str:
    """A language of the settings."""
    own = request.user.language if isinstance(request.user, Operator) else ""
    return own or translation.get_language_from_request(request)
