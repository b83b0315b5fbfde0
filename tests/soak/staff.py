"""Those who look after memories: an application that keeps facts, an operator in the admin, passes and erasures."""

import os
import random
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.soak.asking import AGAIN_SECONDS, LANDED_SECONDS, Answer, Caller
from tests.soak.browsing import Browser, found_in
from tests.soak.journal import Journal, mark
from tests.soak.makers import post_trajectory
from tests.soak.people import Person, Talker

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND_SECONDS = 300.0
OVERSTAYED = 124  # as timeout(1) says it
EXPIRES = timedelta(seconds=20)
State = list[str]


class Facts:
    """Facts of one person, whose state is known after each change: as it was, or as it was to be."""

    def __init__(self, caller: Caller, person: Person) -> None:
        self.caller, self.person = caller, person
        self._number = 0

    def text(self) -> str:
        self._number += 1
        return f"Collects stamps of {mark(self.person.prefix, 'f', self._number)}"

    def state(self, **more: Any) -> tuple[str, str]:
        """A new fact: its id, or nothing where it was refused, and its text."""
        text = self.text()
        body = {"user_id": self.person.user_id, "content": text, "category": "context", **more}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        noted = {"headers": headers, "ends": "expires_at" in more}
        answer = self.caller.until_accepted("state", "POST", "/api/v1/facts", body, **noted)
        return str(answer.body["id"]) if answer.is_accepted else "", text

    def look(self, fact: str, *allowed: State) -> State:
        """What it is now, noted beside what it can be."""
        answer = self.caller.until_accepted("look", "GET", f"/api/v1/facts/{fact}")
        seen = [str(answer.body["status"]), str(answer.body["content"])]
        self.caller.journal.note(do="fact", id=fact, allowed=list(allowed), seen=seen)
        return seen


class Keeper:
    """States facts over REST, rewords, deletes and restores them. An answer that was lost is looked up."""

    def __init__(self, caller: Caller, person: Person, seed: str) -> None:
        self._facts, self._caller = Facts(caller, person), caller
        self._dice = random.Random(seed)
        self._kept: dict[str, State] = {}

    def step(self) -> None:
        if len(self._kept) < 5 or self._dice.random() < 0.3:
            fact, text = self._facts.state()
            self._kept[fact] = self._facts.look(fact, ["active", text])
            return
        fact = self._dice.choice(list(self._kept))
        before = self._kept[fact]
        after, answer = self._change(fact, before)
        allowed = [after] if answer.is_accepted else [before, after]
        self._kept[fact] = self._facts.look(fact, *allowed)

    def _change(self, fact: str, before: State) -> tuple[State, Answer]:
        path = f"/api/v1/facts/{fact}"
        if before[0] == "trashed":
            return ["active", before[1]], self._caller.ask("restore", "POST", f"{path}/restore", {})
        if self._dice.random() < 0.5:
            return ["trashed", before[1]], self._caller.ask("delete", "DELETE", path)
        text = self._facts.text()
        return ["active", text], self._caller.ask("reword", "PATCH", path, {"content": text})


class Fader:
    """States facts that expire soon: passes of forgetting take them."""

    def __init__(self, caller: Caller, person: Person) -> None:
        self._facts = Facts(caller, person)

    def step(self) -> None:
        soon = (datetime.now(UTC) + EXPIRES).isoformat()
        fact, _ = self._facts.state(expires_at=soon)
        if fact:
            self._facts.caller.journal.note(do="fades", id=fact)


class Operator:
    """Works in the admin as a browser does: lists, corrects, undoes, forgets, restores."""

    LISTS = (
        "",
        "memories/fact/",
        "memories/enduser/",
        "memories/session/",
        "memories/extractionrun/",
        "memories/episode/",
    )

    def __init__(self, port: int, caller: Caller, person: Person, access: dict[str, str], seed: str) -> None:
        self._browser, self._access = Browser(port, caller.journal, "page"), access
        self._facts = Facts(caller, person)
        self._dice = random.Random(seed)

    def step(self) -> None:
        if self._dice.random() < 0.5:
            self._page(self._dice.choice(self.LISTS))
            return
        fact, text = self._facts.state()
        known = self._facts.look(fact, ["active", text])
        for verb in ("correct", "undo", "forget", "restore"):
            known = self._carry_out(fact, verb, known, text)

    def _carry_out(self, fact: str, verb: str, before: State, first: str) -> State:
        after = {
            "correct": ["active", f"{first}, from 1890"],
            "undo": ["active", first],
            "forget": ["trashed", before[1]],
            "restore": ["active", before[1]],
        }[verb]
        page = self._page(f"memories/fact/{fact}/change/")
        form = {"version": found_in(r'name="version" value="(\d+)"', page), "reason": "soak"}
        path = f"memories/fact/{fact}/{verb}/"
        if verb == "correct":
            form |= {"content": after[1], "category": "context"}
        elif verb == "undo":
            path = self._undo
        if not path:
            # The message with it went with an answer that was lost.
            return before
        done = self._page(path, form)
        self._undo = found_in(rf"/admin/(memories/fact/{fact}/undo/[0-9a-f-]+/)", done)
        return self._facts.look(fact, before, after)

    _undo = ""

    def _page(self, path: str, form: dict[str, str] | None = None) -> str:
        """The page's text, signed in; a page is asked for again while the hub cannot give it, a form is sent once."""
        deadline = time.monotonic() + LANDED_SECONDS
        while time.monotonic() < deadline:
            status, text = self._open(path, form)
            if 'name="password"' in text and 'name="username"' in text:
                self._sign_in()
            elif form is not None or status in (200, 404):
                return text
            time.sleep(AGAIN_SECONDS)
        raise TimeoutError(f"no page at {path}")

    def _sign_in(self) -> None:
        self._open("login/", {"username": self._access["username"], "password": self._access["password"]})

    def _open(self, path: str, form: dict[str, str] | None) -> tuple[int, str]:
        sent = None if form is None else {**form, "csrfmiddlewaretoken": self._browser.cookie("csrf")}
        status, page = self._browser.open(f"admin/{path}", sent)
        return status, page.decode(errors="replace")


class Commands:
    """`manage.py …` beside the hub, as cron or an operator runs it."""

    def __init__(self, journal: Journal, home: Path) -> None:
        self._journal, self._home = journal, home

    def run(self, *words: str, **noted: Any) -> int:
        environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", "MEMORYHUB_HOME": str(self._home)}
        command = [sys.executable, "manage.py", *words]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
            )
            code, says = done.returncode, done.stderr + done.stdout
        except subprocess.TimeoutExpired:
            code, says = OVERSTAYED, f"not done within {COMMAND_SECONDS:.0f} s"
        line = {"do": "command", "command": words[0], "code": code, **noted}
        if code:
            line["says"] = says[-500:]
        self._journal.note(**line, ms=round((time.monotonic() - begun) * 1000))
        return code

    def until_done(self, *words: str, **noted: Any) -> bool:
        """A command that an outage cut off, or that took too long, is run again."""
        deadline = time.monotonic() + COMMAND_SECONDS + LANDED_SECONDS
        while self.run(*words, **noted):
            if time.monotonic() > deadline:
                return False
            time.sleep(AGAIN_SECONDS)
        return True


class Eraser:
    """People who talk for a moment and are erased; then somebody posts for them as if nothing had been."""

    def __init__(self, caller: Caller, commands: Commands, tenant: str, letters: str, seed: str) -> None:
        self._caller, self._commands, self._tenant, self._letters, self._seed = caller, commands, tenant, letters, seed
        self._count = 0

    def step(self) -> None:
        self._count += 1
        prefix = f"{self._letters}{self._count:03}"
        person = Person(self._tenant, f"leaving-{prefix}", prefix)
        talker = Talker(self._caller, person, f"{self._seed} {prefix}")
        for number in range(1, 4):
            talker.post("last", number, with_file=number == 1)
        post_trajectory(self._caller, person, 1, family="leaving")
        Facts(self._caller, person).state()
        body = {"user_id": person.user_id, "query": "Which stamps?"}
        self._caller.ask("context", "POST", "/api/v1/context", body)
        erase = ("erase_user", "--tenant", self._tenant, "--user", person.user_id, "--policy", "refuse")
        if self._commands.until_done(*erase, person=prefix):
            self._caller.journal.note(do="erased", person=prefix)
        late = {
            "user_id": person.user_id,
            "session_id": "late",
            "messages": [{"role": "user", "content": "Still here"}],
        }
        self._caller.until_accepted("late", "POST", "/api/v1/turns", late, person=prefix)
