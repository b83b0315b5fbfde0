"""A message of another service as one of `POST /turns`, and a conversation of them that counts what it leaves out."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memories.api.v1.fields import YEARS
from memories.imports.places import Given
from memories.imports.records import NO_TEXT, OTHER_BRANCH, OTHER_FORM, SAME_ID, LeftOut, Record, Said

SENDERS = {
    "human": "user", "user": "user", "prompter": "user", "request": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant", "response": "assistant",
}  # fmt: skip
# What no id can have: control characters, and halves of others.
_IN_NO_ID, _LONGEST_ID = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]"), 255
# How a client shows a thought inside of an answer.
_THOUGHT = re.compile(r"<(?:(details) type=\"reasoning\"|think(?:ing)?>)")
_ENDS = {"details": re.compile(r"</details>\s*"), None: re.compile(r"</think(?:ing)?>\s*")}
# ChatGPT's marks of what an answer cites.
_CITED = re.compile("\ue200[^\ue200\ue201]{0,2000}\ue201|[\ue200-\ue206]|【[0-9:]{1,12}†[^】]{0,200}】")


class Talk:
    """A conversation under construction."""

    def __init__(self, given: Given, session_id: Any, *, began: Any = None) -> None:
        self._given, self.began = given, began
        self.session_id = session_id
        self.messages: list[dict[str, Any]] = []
        self.elsewhere: set[str] = set()
        self.left_out = Counter[str]()

    def say(self, role: Any, text: Any, own_id: Any, at: Any = None, *, others: int = 0, **more: Any) -> None:
        """Add a message; one that says nothing, or has another form, is counted, and so are the `others` of its parts
        that have. Without a time it is of when the conversation began."""
        sender = SENDERS.get(role.lower()) if isinstance(role, str) else None
        if sender == "assistant" and isinstance(text, str):
            text = _CITED.sub("", _without_thoughts(text))
        is_other = not sender or not isinstance(text, str | None)
        self.omit(OTHER_FORM, others or is_other)
        if is_other or not (text and text.strip()):
            self.omit(NO_TEXT, not (is_other or others))
            return
        found = (self._given.moment(one) for one in (at, self.began))
        moment = next((one for one in found if one and one.year in YEARS), None)
        timestamp = {"timestamp": moment.isoformat()} if moment else {}
        # Without an id it has its place, so that it is stored once.
        name = id_of(own_id) or f"import-{len(self.messages) + 1}"
        self.messages.append({"role": sender, "content": text.strip(), "external_id": name, **timestamp, **more})

    def omit(self, reason: str, count: int = 1) -> None:
        self.left_out[reason] += count

    def objects(self, whole: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        """The objects of a list that is a member; what has another form is counted."""
        found, others = objects_in(whole, name)
        self.omit(OTHER_FORM, others)
        return found

    def by_id(self, found: Iterable[tuple[Any, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        """By their ids, those without one by their place. Of several with one id the first stays."""
        named: dict[str, dict[str, Any]] = {}
        for place, (own, one) in enumerate(found):
            name = str(own) if own not in (None, "") else str(place)
            if name in named:
                self.omit(SAME_ID)
            named.setdefault(name, one)
        return named

    def on_other_branches(self, *ids: Any) -> None:
        self.elsewhere |= {id_of(one) for one in ids if one is not None}
        self.left_out[OTHER_BRANCH] += len(ids)

    def records(self, *, shown: Iterable[Any] | None = None) -> Iterator[Record]:
        """`shown`: ids on the branch that was shown last, where the source keeps branches."""
        name = id_of(self.session_id) or self._named_by_its_beginning()
        # What says nothing now may have said something in an older export.
        silent = {id_of(one) for one in shown or () if one is not None}
        elsewhere = self.elsewhere | silent - {one["external_id"] for one in self.messages}
        yield Said({"session_id": name}, self.messages, shown is not None, frozenset(elsewhere))
        for reason, count in self.left_out.items():
            if count:
                yield LeftOut(reason, count)

    def _named_by_its_beginning(self) -> str:
        """The same in each export, as a conversation begins only once."""
        first = [str(self.messages[0].get(name)) for name in ("content", "timestamp")] if self.messages else []
        return f"import-{hashlib.sha256(json.dumps(first).encode()).hexdigest()[:32]}"


def id_of(own: Any) -> str:
    """An id as it is, or where no id here can be like it one made of it; "" for none."""
    name = "" if own is None else str(own)
    if not name or (len(name) <= _LONGEST_ID and name.strip() and not _IN_NO_ID.search(name)):
        return name
    return f"import-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def object_in(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object that is a member; an empty one where there is none."""
    member = whole.get(name)
    return member if isinstance(member, dict) else {}


def objects_in(whole: Mapping[str, Any], name: str) -> tuple[list[dict[str, Any]], int]:
    """The objects of a list that is a member, and how many others there are in its place."""
    found = whole.get(name)
    if not isinstance(found, list):
        return [], int(found is not None)
    good = [one for one in found if isinstance(one, dict)]
    return good, len(found) - len(good)


def _without_thoughts(text: str) -> str:
    """In one pass: where no end follows a beginning, none follows a later one."""
    pieces: list[str] = []
    unended: set[str | None] = set()
    kept = at = 0
    while found := _THOUGHT.search(text, at):
        at = found.end()
        end = None if found[1] in unended else _ENDS[found[1]].search(text, at)
        if end is None:
            unended.add(found[1])
            continue
        pieces.append(text[kept : found.start()])
        kept = at = end.end()
    return "".join([*pieces, text[kept:]])
