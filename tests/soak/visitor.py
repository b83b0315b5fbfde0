"""A person at the page of their own memory: they are let in, look, correct, forget, take back, and take a copy."""

import io
import time
import zipfile

from tests.soak.asking import AGAIN_SECONDS, LANDED_SECONDS, WORKED_SECONDS, Caller
from tests.soak.browsing import Browser, found_in
from tests.soak.journal import people_in
from tests.soak.people import Person
from tests.soak.staff import Facts, State

# Every so many visits they take a copy of their data.
COPIES = 4
_TOKEN, _VERSION = r'name="token" value="([^"]+)"', r'name="version" value="(\d+)"'


class Visitor:
    """What the person does is looked up by the API: a form is sent once, and its answer may have been lost."""

    def __init__(self, port: int, caller: Caller, person: Person) -> None:
        self._port, self._caller, self._person = port, caller, person
        self._facts = Facts(caller, person)
        self._browser = self._new_browser()
        self._visits = 0

    def step(self) -> None:
        self._visits += 1
        fact, text = self._facts.state()
        known = self._facts.look(fact, ["active", text])
        self._browser = self._new_browser()
        self._page("")
        for verb in ("correct", "forget", "restore"):
            known = self._carry_out(fact, verb, known)
        if self._visits % COPIES == 0:
            self._take_copy()
        self._browser.open("me/leave", {"token": found_in(_TOKEN, self._page("data"))})

    def _carry_out(self, fact: str, verb: str, before: State) -> State:
        """With the fact as it is; what cannot be done (a form before was lost) changes nothing."""
        after = {
            "correct": ["active", f"{before[1]}, from 1890"],
            "forget": ["trashed", before[1]],
            "restore": ["active", before[1]],
        }[verb]
        page = self._page("" if verb == "restore" else f"facts/{fact}")
        form = {"token": found_in(_TOKEN, page), "version": found_in(_VERSION, page), "text": after[1]}
        self._browser.open(f"me/facts/{fact}/{verb}", form)
        return self._facts.look(fact, before, after)

    def _take_copy(self) -> None:
        """It is made by a worker, and can be downloaded once. What was refused is asked for again."""
        deadline = time.monotonic() + WORKED_SECONDS
        while "/me/data/download" not in (page := self._page("data")):
            if "/me/data/export" in page:
                self._browser.open("me/data/export", {"token": found_in(_TOKEN, page)})
            if time.monotonic() > deadline:
                self._caller.journal.note(do="no copy", person=self._person.prefix)
                return
            time.sleep(1.0)
        status, content = self._browser.open("me/data/download", {"token": found_in(_TOKEN, page)})
        if status == 200 and content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as copy:
                told = "\n".join(copy.read(name).decode(errors="replace") for name in copy.namelist())
            self._caller.journal.note(do="copy", person=self._person.prefix, people=people_in(told))

    def _page(self, path: str) -> str:
        """A page of the person's, who is let in once more whenever their session is not there."""
        deadline = time.monotonic() + LANDED_SECONDS
        while time.monotonic() < deadline:
            if self._browser.cookie("person"):
                status, page = self._browser.open(f"me/{path}")
                if status == 200 or (status == 404 and path.startswith("facts/")):
                    return page.decode(errors="replace")
                if status in (404, 410):
                    self._browser = self._new_browser()
            else:
                self._enter()
            time.sleep(AGAIN_SECONDS)
        raise TimeoutError(f"no page at /me/{path}")

    def _enter(self) -> None:
        """A link that was opened while the answer was lost is used: the next attempt makes another."""
        made = self._caller.until_accepted(
            "link", "POST", "/api/v1/person-links", {"user_id": self._person.user_id, "language": "en"}
        )
        if made.is_accepted:
            self._browser.open("me/" + str(made.body["url"]).split("/me/", 1)[1])

    def _new_browser(self) -> Browser:
        return Browser(self._port, self._caller.journal, "own page", self._person.prefix)
