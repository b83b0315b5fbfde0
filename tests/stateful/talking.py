"""What clients of the API post: turns, doubles, whole conversations, the end of a session, its deletion."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from memories.capture import flushing, ingest
from memories.capture.ingest import Conversation, PostedMessage
from memories.curation.sessions import delete_session
from memories.exceptions import ExternalIdReused, PersonRestricted
from memories.models import Turn
from tests.stateful.texts import MESSAGES
from tests.stateful.world import SESSIONS, WHO, World, of_person

SESSION = st.sampled_from(SESSIONS)


class Talking(World):
    """Beside the hub it keeps what each session must hold (I1)."""

    @rule(who=WHO, session=SESSION, messages=MESSAGES, flush=st.booleans())
    def post(self, who: int, session: str, messages: Sequence[PostedMessage], flush: bool) -> None:
        self._post(who, session, of_person(messages, self.people[who].marker), flush=flush)

    @rule(who=WHO, session=SESSION, count=st.integers(2, 6))
    def chat(self, who: int, session: str, count: int) -> None:
        """Rounds enough to fill a window."""
        said = [("user", "asks for tea and cake"), ("assistant", "brings tea and cake, with a long story")] * count
        self._post(who, session, of_person([PostedMessage(role, text) for role, text in said], self.people[who].marker))

    @rule(who=WHO, session=SESSION, echo=st.booleans())
    def repeat(self, who: int, session: str, echo: bool) -> None:
        """A client that did not hear the answer, or an agent that repeats our own context."""
        somebody = self.people[who]
        known = [one for one in somebody.said.get(session, []) if one.external_id]
        if echo:
            echoed = PostedMessage("user", f"{somebody.marker} pasted:\n{somebody.last_memory}")
            self._post(who, session, [echoed, PostedMessage("assistant", somebody.last_memory)])
        elif known:
            self._post(who, session, known[-2:])

    @rule(who=WHO, first=MESSAGES, second=MESSAGES)
    def post_conversations(self, who: int, first: list[PostedMessage], second: list[PostedMessage]) -> None:
        somebody = self.people[who]
        both = [of_person(messages, somebody.marker) for messages in (first, second)]
        expected = [self._expected(who, name, messages) for name, messages in zip(SESSIONS, both, strict=True)]
        posted = [Conversation(somebody.marker, name, "", said) for name, said in zip(SESSIONS, both, strict=True)]
        self.wait()
        try:
            ingest.store_conversations(tenant=somebody.row.tenant, conversations=posted)
        except ExternalIdReused:
            assert None in expected
        except PersonRestricted:
            assert somebody.row.restricted_at
        else:
            for name, turns in zip(SESSIONS, expected, strict=True):
                self._note(who, name, turns)

    @rule(who=WHO, session=SESSION, how=st.sampled_from(["flush", "end", "end", "delete"]), by_key=st.booleans())
    def close(self, who: int, session: str, how: str, by_key: bool) -> None:
        if how == "delete":
            self._delete_session(who, session, by_key=by_key)
        else:
            self.do(flushing.end_session if how == "end" else flushing.flush_session, **self._named(who, session))

    def _delete_session(self, who: int, session: str, *, by_key: bool) -> None:
        for gone in self.sessions_of(who):
            if gone.external_id == session:
                given = {"session_id": gone.pk, "tenant": gone.tenant, "actor": self.actor(by_key=by_key)}
                self.do(delete_session, **given, now=self.now)
                if gone not in self.sessions_of(who):
                    self.people[who].said.pop(session, None)

    def _named(self, who: int, session: str) -> dict[str, object]:
        somebody = self.people[who]
        return {
            "tenant": somebody.row.tenant,
            "user_id": somebody.marker,
            "session_id": session,
            "agent_id": "",
        }

    def _post(self, who: int, session: str, messages: Sequence[PostedMessage], *, flush: bool = False) -> None:
        expected = self._expected(who, session, messages)
        self.wait()
        try:
            ingest.store_turns(messages=messages, flush=flush, **self._named(who, session))  # type: ignore[arg-type]
        except ExternalIdReused:
            assert expected is None
        except PersonRestricted:
            assert self.people[who].row.restricted_at
        else:
            self._note(who, session, expected)

    def _expected(self, who: int, session: str, messages: Sequence[PostedMessage]) -> list[PostedMessage] | None:
        """The session afterwards; None: an external_id stands for other words already."""
        turns = list(self.people[who].said.get(session, []))
        for message in messages:
            known = [turn for turn in turns if message.external_id and turn.external_id == message.external_id]
            if known and _says(known[0]) != _says(message):
                return None
            turns += [] if known else [message]
        return turns

    def _note(self, who: int, session: str, turns: list[PostedMessage] | None) -> None:
        """What was posted is kept, unless nothing is to be."""
        if self.people[who].row.capture:
            assert turns is not None
            self.people[who].said[session] = turns

    def check_turns(self) -> None:
        """Every turn that was taken is there once, in its client's order, numbered without gaps (I1)."""
        for somebody in self.people:
            there: dict[str, list[tuple[Any, ...]]] = {}
            rows = Turn.objects.filter(end_user=somebody.row).order_by("session", "number")
            for name, *turn in rows.values_list("session__external_id", "number", "role", "content"):
                there.setdefault(name, []).append(tuple(turn))
            assert there == {
                name: [(number, turn.role, turn.content) for number, turn in enumerate(turns, start=1)]
                for name, turns in somebody.said.items()
                if turns
            }


def _says(message: PostedMessage) -> tuple[object, ...]:
    return message.role, message.content, message.tool_call_id
