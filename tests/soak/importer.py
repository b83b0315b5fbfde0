"""An application that brings a person's conversations from elsewhere: looks first, brings in, again, and takes back."""

import io
import json
import random
import time
import zipfile
from typing import Any
from urllib.parse import urlencode

from tests.soak.asking import WORKED_SECONDS, Caller
from tests.soak.journal import mark
from tests.soak.people import ANIMALS, PLACES, Person

TALKS = 3
# Of imports: sent a second time, and taken back.
AGAIN_EVERY, BACK_EVERY = 2, 4
LOOK_SECONDS = 1.0
BEGAN = 1_770_000_000
# What is over as it should be; whatever a worker met on its way is begun again.
SETTLED = ("checked", "done", "undone")
BEGIN_AGAIN = ("worker_lost", "database", "disk")
TOO_MANY = "too_many_imports"
Talks = dict[str, list[str]]


class Importer:
    """Each export is new: some conversations as ChatGPT writes them."""

    def __init__(self, caller: Caller, person: Person, seed: str) -> None:
        self._caller, self.person = caller, person
        self._dice = random.Random(seed)
        self._number = 0

    def step(self) -> None:
        self._number += 1
        file, talks = self._export()
        row = self._bring(file)
        if row and self._number % BACK_EVERY == 0:
            self._take_back(row, talks)
            return
        if row and self._number % AGAIN_EVERY == 0:
            self._settled(self._upload(file, dry_run="false"))
        for session, said in talks.items() if row else ():
            self._note("imported", session=session, marks=said)

    def _bring(self, file: bytes) -> dict[str, Any] | None:
        """As the document says: first what it would do, then it is started."""
        checked = self._settled(self._upload(file, dry_run="true"))
        if not checked:
            return None
        self._post(f"{checked['id']}/resume")
        return self._settled(checked["id"], besides="checked")

    def _take_back(self, row: dict[str, Any], talks: Talks) -> None:
        """What it stored goes; what another upload of the file had stored before stays, and is another import's."""
        self._post(f"{row['id']}/undo")
        undone = self._settled(row["id"], besides="done")
        if undone and row["counts"].get("messages") == sum(map(len, talks.values())):
            for session, said in talks.items():
                self._note("taken back", session=session, marks=said)

    def _upload(self, file: bytes, **query: str) -> str:
        """Its id. Uploads whose answers were lost wait to be started: they are taken back once there are many."""
        path = f"/api/v1/imports?{urlencode({'user_id': self.person.user_id, **query})}"
        headers = {"Content-Type": "application/octet-stream"}
        while True:
            answer = self._caller.until_accepted("import", "POST", path, file, headers=headers)
            if answer.code != TOO_MANY:
                return str(answer.body["id"])
            waiting = self._caller.until_accepted("import", "GET", "/api/v1/imports?status=checked")
            for one in waiting.body["results"]:
                self._post(f"{one['id']}/undo")
            time.sleep(LOOK_SECONDS)

    def _settled(self, number: str, besides: str = "") -> dict[str, Any] | None:
        """The import once its worker has done; one that failed by a fault is begun again. None: it was never done."""
        deadline = time.monotonic() + WORKED_SECONDS
        status = failure = ""
        while time.monotonic() < deadline:
            row = self._caller.until_accepted("import", "GET", f"/api/v1/imports/{number}").body or {}
            status, failure = row.get("status", ""), row.get("failure", "")
            if status in SETTLED and status != besides:
                return dict(row)
            if status == "failed" and failure in BEGIN_AGAIN:
                self._post(f"{number}/resume")
            time.sleep(LOOK_SECONDS)
        self._note("not imported", why=f"{status} {failure}".strip())
        return None

    def _post(self, path: str) -> None:
        self._caller.until_accepted("import", "POST", f"/api/v1/imports/{path}", {})

    def _export(self) -> tuple[bytes, Talks]:
        """The file, and the marks of each of its conversations."""
        talks: Talks = {}
        written = []
        for place in range(TALKS):
            number, name = self._number * TALKS + place, f"import-{self._number}-{place}"
            said, replied = talks[name] = [mark(self.person.prefix, kind, number) for kind in "nr"]
            text = f"I keep a {self._dice.choice(ANIMALS)} called {said} in {self._dice.choice(PLACES)}."
            written.append(_talk(name, BEGAN + 60 * number, ("user", text), ("assistant", f"Noted, {replied}.")))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("conversations.json", json.dumps(written))
        return packed.getvalue(), talks

    def _note(self, do: str, **noted: Any) -> None:
        self._caller.journal.note(do=do, person=self.person.prefix, **noted)


def _talk(name: str, began: int, *said: tuple[str, str]) -> dict[str, Any]:
    """A conversation of one branch."""
    mapping: dict[str, Any] = {"root": {"message": None, "parent": None}}
    for place, (role, text) in enumerate(said):
        content = {"content_type": "text", "parts": [text]}
        message = {"id": f"{name}-{place}", "author": {"role": role}, "content": content, "create_time": began + place}
        message |= {"recipient": "all", "metadata": {}}
        mapping[f"n{place}"] = {"parent": f"n{place - 1}" if place else "root", "message": message}
    return {"conversation_id": name, "create_time": began, "mapping": mapping, "current_node": f"n{len(said) - 1}"}
