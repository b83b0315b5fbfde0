"""A browser without scripts: cookies, forms and redirects; each page that it opens is noted."""

import http.client
import http.cookiejar
import re
import time
import urllib.error
import urllib.parse
import urllib.request

from tests.soak.asking import REQUEST_SECONDS
from tests.soak.journal import Journal, people_in

# Links, and ids of rows.
_NAMES = re.compile(r"(?<=open/).+|[0-9a-f-]{36}")


class Browser:
    """Its lines are of the kind `do`; pages that `person` opens are noted with whose marks they show."""

    def __init__(self, port: int, journal: Journal, do: str, person: str = "") -> None:
        self._base, self._journal, self._do, self._person = f"http://127.0.0.1:{port}", journal, do, person
        self._cookies = http.cookiejar.CookieJar()
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self._cookies))
        self._opener = urllib.request.build_opener(*handlers)

    def cookie(self, part: str) -> str:
        """The value of the cookie with this in its name, or nothing."""
        return next((cookie.value for cookie in self._cookies if part in cookie.name), "") or ""

    def open(self, path: str, form: dict[str, str] | None = None) -> tuple[int, bytes]:
        """The status and the page, where redirects lead; 0: no answer."""
        begun = time.monotonic()
        data = None if form is None else urllib.parse.urlencode(form).encode()
        retry_after = ""
        try:
            with self._opener.open(f"{self._base}/{path}", data, timeout=REQUEST_SECONDS) as answer:
                status, page = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, page, retry_after = error.code, error.read(), error.headers.get("Retry-After", "")
        except (OSError, http.client.HTTPException):
            status, page = 0, b""
        noted = {"page": _NAMES.sub("id", path), "sent": form is not None, "retry_after": retry_after}
        if self._person:
            noted |= {"person": self._person, "people": people_in(page.decode(errors="replace"))}
        self._journal.note(do=self._do, status=status, ms=round((time.monotonic() - begun) * 1000), **noted)
        return status, page


def found_in(pattern: str, text: str) -> str:
    """The first group of the first place, or nothing."""
    found = re.search(pattern, text)
    return found.group(1) if found else ""
