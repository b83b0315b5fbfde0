"""The window of the conversation that an agent is in: read as far as it can show, and told as chat messages."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import dropwhile

from memories import conf
from memories.models import EndUser, Role, Turn, hand_written
from memories.pipeline import chat, rows, window
from memories.pipeline.chat import Message
from memories.pipeline.echo import cut_echo
from memories.pipeline.lines import one_line

# At most so many turns are looked at: an agent may have called hundreds of tools in a few rounds.
MOST_TURNS = 400
# The newest of the system's own; most sessions have one, at their start.
MOST_SYSTEM_TURNS = 10
SUMMARY = "Earlier in this conversation: "
_COLUMNS = ("id", "number", "role", "content", "parts", "name", "tool_calls", "tool_call_id", "token_count")
_SESSION = """
    SELECT s.id, coalesce(w.left_number, 0), coalesce(w.summary, '') FROM memories_session s
    LEFT JOIN memories_workingmemory w ON w.session_id = s.id
    WHERE s.tenant_id = %s AND s.end_user_id = %s AND s.agent_id = %s AND s.external_id = %s
"""
# `newer_…` count what was said after a turn. The user's turn of the newest round is read whatever followed it.
_TURNS = f"""
    WITH last AS (
        SELECT id, number, role, token_count FROM memories_turn
        WHERE session_id = %(session)s AND number > %(left)s AND role <> 'system'
        ORDER BY number DESC LIMIT %(most)s
    ), counted AS (
        SELECT id, role, sum(token_count) OVER newest_first - token_count AS newer_tokens,
            count(*) FILTER (WHERE role = 'user') OVER newest_first - (role = 'user')::int AS newer_rounds
        FROM last WINDOW newest_first AS (ORDER BY number DESC)
    ), wanted AS (
        SELECT id FROM counted WHERE newer_rounds < %(rounds)s
            AND (newer_tokens <= %(tokens)s OR role = 'user' AND newer_rounds = 0)
        UNION ALL
        (SELECT id FROM memories_turn WHERE session_id = %(session)s AND role = 'system'
         ORDER BY number DESC LIMIT %(most_system)s)
    )
    SELECT {hand_written.selected("t", _COLUMNS)} FROM memories_turn t JOIN wanted USING (id) ORDER BY t.number
"""  # noqa: S608  (columns of our own model)


@dataclass(frozen=True, eq=False)
class Window:
    """What of a session the agent has before it; without a session there is nothing in it.

    `numbers`: of the turns that it shows, those of the system included.
    """

    session: uuid.UUID | None = None
    system: list[Turn] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    summary: str = ""
    numbers: frozenset[int] = frozenset()

    def covers(self, *, session: uuid.UUID, first: int, last: int) -> bool:
        """Whether it shows all of these turns."""
        return session == self.session and all(number in self.numbers for number in range(first, last + 1))

    def messages(self, memory: str) -> list[Message]:
        """What the agent's own system said, the memory, what left the window in short, then the window."""
        told = [memory, self.summary and f"{SUMMARY}{one_line(self.summary)}"]
        between = [chat.system(text) for text in told if text]
        return [*chat.messages_of(self.system), *between, *chat.messages_of(self.turns)]


def open_window(person: EndUser, *, agent_id: str, session_id: str, rules: conf.Rules) -> Window:
    """The window of the person's session, named as the caller names it, trimmed to its limits; empty for none."""
    found = rows.fetched(_SESSION, [person.tenant_id, person.pk, agent_id, session_id])
    if not found:
        return Window()
    ((session, left, summary),) = found
    turns = _read(session, left, rules)
    system = [turn for turn in turns if turn.role == Role.SYSTEM]
    own = _own(system)
    room = max(0, rules.window_tokens - window.cost(own))
    others = _whole([turn for turn in turns if turn.role != Role.SYSTEM])
    shown = window.trim(others, max_tokens=room, max_rounds=rules.window_rounds)
    return Window(session, own, shown, summary, frozenset(turn.number for turn in (*system, *shown)))


def _own(system: Sequence[Turn]) -> list[Turn]:
    """Each text once, for some applications post their prompt again with each message; without what we gave them."""
    return list({turn.content: turn for turn in system if not _is_ours(turn.content)}.values())


def _is_ours(text: str) -> bool:
    return text.startswith(SUMMARY) or not cut_echo(text).strip()


def _whole(turns: list[Turn]) -> list[Turn]:
    """Without the end of a round whose beginning was not read, unless there is no other."""
    if len(turns) < MOST_TURNS:
        return turns
    return list(dropwhile(lambda turn: turn.role != Role.USER, turns)) or turns


def _read(session: uuid.UUID, left: int, rules: conf.Rules) -> Sequence[Turn]:
    given = {
        "session": session,
        "left": left,
        "most": MOST_TURNS,
        "most_system": MOST_SYSTEM_TURNS,
        "tokens": rules.window_tokens,
        "rounds": rules.window_rounds,
    }
    return [hand_written.read(Turn, _COLUMNS, row) for row in rows.fetched(_TURNS, given)]
