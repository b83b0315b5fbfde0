"""Whose words the messages of a request through the gateway are (rules.md, 1.6): what the application says, what the
hub saw pass, frames, and the place of a message decide, after what its text alone tells (text/authorship.py).

Role is not authorship: summaries of a model, orders to agents, documents and results of tools come in role user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from memories.capture import seen_texts
from memories.capture.ingest import PostedMessage, speaker
from memories.capture.seen_texts import Recent, Seen, Source
from memories.models import Author, Role
from memories.text import authorship, labels
from memories.text.frames import slot_of
from memories.text.labels import SELF

LAST, NONE = "last", "none"
# Nobody reads an answer and types the next message in less time.
HASTE = timedelta(seconds=1)
# A request beside the conversation comes within so short a time of the message that it repeats.
SAME_MOMENT = timedelta(minutes=1)
# So many letters beside what came back are words of one's own.
_OWN_WORDS = 8
# A longer text without the tools that its conversation always offers is an order to a model.
LONGEST_WITHOUT_TOOLS = 300
# So many texts of both sides are a conversation.
_SEVERAL = 3
# A summary stands before one of so many.
_FIRST_ANSWERS = 3
_TRUST = (Author.PERSON, Author.MODEL, Author.OTHER, Author.APPLICATION)


@dataclass(frozen=True)
class Judged:
    """A request's messages with their authors, and the place of the one that the person has just said; None where
    nobody said anything now."""

    messages: Sequence[PostedMessage]
    now: int | None = None

    @property
    def asks_now(self) -> bool:
        """Whether what the person says stands last: it is no step towards an answer."""
        rest = self.messages[self.now + 1 :] if self.now is not None else ()
        return self.now is not None and all(one.role == Role.USER for one in rest)

    @property
    def whole(self) -> bytes:
        """What stands for the text of now."""
        return seen_texts.whole_of(self.messages[self.now].content) if self.now is not None else b""

    @property
    def query(self) -> str:
        """The person's own words of now, in which a context is looked up."""
        if self.now is None:
            return ""
        message = self.messages[self.now]
        own = message.reading.own
        places = [(at, at + len(cut)) for cut in message.cut if (at := message.content.find(cut)) >= 0]
        spans = authorship.without(places, message.content, own)
        return "\n\n".join(message.content[start:end] for start, end in spans)


NOTHING_SAID = Judged(())


class Found(NamedTuple):
    """What was found of a text that came back: whose it is, and the passages that are not the person's."""

    author: str = Author.PERSON
    cut: tuple[str, ...] = ()


def placed(messages: Sequence[PostedMessage], *, said: str, user_id: str) -> Judged:
    """The authors as the request alone shows them. `said`: which of its user messages the person has just said, as the
    application says it: LAST, NONE, or "" for no word of it.

    What was not the last of the person's messages when it first came was not said now: it is an example, or a history
    that the application hands over.
    """
    given = list(messages)
    users = [at for at, message in enumerate(given) if message.role == Role.USER]
    if said:
        typed = _last_typed(given, users) if users and said == LAST else []
        for at in users:
            author = Author.PERSON if at in typed else Author.APPLICATION
            given[at] = replace(given[at], author=author, is_declared=True)
        return Judged(given, max(typed, default=None))
    own = speaker((given[at].name for at in users), user_id=user_id)
    now = None
    for at in reversed(users):
        message = given[at]
        if message.name not in ("", own):
            given[at] = replace(message, author=Author.OTHER)
        elif message.is_material or _is_quoting(given, at) or now is not None:
            given[at] = replace(message, author=Author.APPLICATION)
        else:
            now = at
    return Judged(given, now)


def _last_typed(messages: Sequence[PostedMessage], users: Sequence[int]) -> list[int]:
    """The place of the last user's message; of one that was divided, the places of what was typed in it."""
    parts: list[int] = []
    for at in reversed(users):
        if not messages[at].is_part or (parts and parts[-1] != at + 1):
            break
        parts.append(at)
    return [at for at in parts if not messages[at].is_material] or [users[-1]]


def judged(placed: Judged, seen: Recent, *, arrived: datetime, instructions: str = "") -> Judged:
    """The authors by what the hub saw pass before. `seen`: the person's texts of the last hours,
    and others that begin or end like what is said now; `instructions`: the request's system prompt."""
    if not placed.messages or any(message.is_declared for message in placed.messages):
        return placed
    given, now = list(placed.messages), placed.now
    if now is not None:
        if _is_hasty(given[: now + 1], instructions, seen.texts, arrived=arrived):
            found = Found(Author.APPLICATION)
        else:
            found = came_back(given[now], seen.sources)
        if found.author == Author.PERSON:
            found = found._replace(cut=(*found.cut, *slot_of(given[now].content, seen.alike)))
        given[now] = replace(given[now], author=found.author, cut=found.cut)
        now = now if found.author == Author.PERSON else None
    # What a request beside the conversation showed was not kept; now the conversation holds it.
    waiting = {one.whole for one in seen.texts if one.author == Author.PERSON and one.turn_id is None}
    for at, message in enumerate(given) if waiting else ():
        is_history = at != placed.now and message.role == Role.USER and message.author == Author.APPLICATION
        if is_history and not message.is_material and seen_texts.whole_of(message.content) in waiting:
            given[at] = replace(message, author=Author.PERSON)
    return Judged(given, now)


def came_back(message: PostedMessage, sources: Mapping[bytes, Source]) -> Found:
    """Whose words a text holds of which sentences came before. `sources`: where each was first, by its hash."""
    if not sources:
        return Found()
    told = [(text, sources.get(digest)) for text, digest in seen_texts.sentences(message.content)]
    others = [(text, source) for text, source in told if source and source.author != Author.PERSON]
    persons = {source.id for _, source in told if source and source.author == Author.PERSON}
    count = len({source.id for _, source in told if source})
    lowest = max((source.author for _, source in others), key=_TRUST.index, default=Author.PERSON)
    is_talk = len(persons) > 1 or (persons and others)
    if (is_talk and _is_retold(message, sources, count)) or (persons and _has_talk(message.content, sources)):
        # It retells a conversation.
        return Found(lowest if others else Author.APPLICATION)
    if not others:
        return Found()
    return Found(Author.PERSON if _has_own_words(message, others) else lowest, tuple(text for text, _ in others))


def _is_quoting(messages: Sequence[PostedMessage], at: int) -> bool:
    """Whether it is one of two messages in a row of which the first ends in a colon: it announces the second, which is
    quoted."""
    return any(
        one.role == two.role == Role.USER and authorship.introduces(one.content)
        for one, two in pairwise(messages[max(0, at - 1) : at + 2])
    )


def _is_retold(message: PostedMessage, sources: Mapping[bytes, Source], count: int) -> bool:
    """Whether half of a text came before, or of what is its author's own in it: a program asks again what the person
    asked, with the steps that it took since. A long order around several earlier texts (`count`) retells them, too, and
    one that quotes two of them and in which nobody speaks of themselves."""
    text = message.content
    own = "\n".join(text[start:end] for start, end in authorship.without((), text, message.reading.own))
    if len(own) > LONGEST_WITHOUT_TOOLS and (count >= _SEVERAL or SELF.search(own) is None):
        return True
    return any(
        2 * sum(len(sentence) for sentence, digest in seen_texts.sentences(part) if digest in sources) >= len(part)
        for part in (text.strip(), own)
        if part
    )


def _has_talk(text: str, sources: Mapping[bytes, Source]) -> bool:
    """Whether it holds a transcript with words that the person said before, and nobody speaks of themselves beside it:
    a program asks for a title, or for what could be asked next."""
    spans, _ = labels.transcript(text, (), ())
    told = (sources.get(digest) for start, end in spans for _, digest in seen_texts.sentences(text[start:end]))
    if not any(source and source.author == Author.PERSON for source in told):
        return False
    return not any(SELF.search(text[start:end]) for start, end in authorship.without(spans, text, None))


def _has_own_words(message: PostedMessage, others: Sequence[tuple[str, Source]]) -> bool:
    """Whether the text says more than what came back, and a heading for it. What a program puts around words that came
    back is its own."""
    text = message.content
    places = [(at, at + len(one)) for one, _ in others if (at := text.find(one)) >= 0]
    rest = authorship.without(places, text, message.reading.own)
    own = [part for start, end in rest if not authorship.introduces(part := text[start:end])]
    if message.reading.is_doubtful and rest != authorship.without((), text, message.reading.own):
        own = [part for part in own if SELF.search(part)]
    return sum(letter.isalnum() for part in own for letter in part) >= _OWN_WORDS


def _is_hasty(messages: Sequence[PostedMessage], instructions: str, seen: Sequence[Seen], *, arrived: datetime) -> bool:
    """Whether the answer that the request shows has only just ended: as its last answer, or told again in its
    instructions or its last text. A tool that works for long between the two hides it."""
    last = next((one for one in seen if one.author == Author.MODEL), None)
    if last is None or not timedelta(0) <= arrived - last.seen_at < HASTE:
        return False
    answer = next((one for one in reversed(messages) if one.role == Role.ASSISTANT), None)
    if answer is not None and seen_texts.whole_of(seen_texts.text_of(answer)) == last.whole:
        return True
    told = {digest for text in (instructions, messages[-1].content) for _, digest in seen_texts.sentences(text)}
    return not told.isdisjoint(last.sentences)


def session_behind_summary(messages: Sequence[PostedMessage], seen: Recent, *, agent_id: str) -> str:
    """The session of which a request has but the last answers, behind a summary that a model made of the others; "" for
    none. Both passed through the hub: an example, or a greeting, comes behind no such text."""
    answers = [at for at, message in enumerate(messages) if at and message.role == Role.ASSISTANT]
    if not answers:
        return ""
    sessions = {one.whole: one.session for one in reversed(seen.texts) if one.author == Author.MODEL and one.session}
    for at in answers[:_FIRST_ANSWERS]:
        agent, session_id = sessions.get(seen_texts.whole_of(seen_texts.text_of(messages[at])), ("", ""))
        before = messages[at - 1]
        if session_id and agent == agent_id and before.role == Role.USER:
            sources = [seen.sources.get(digest) for _, digest in seen_texts.sentences(before.content)]
            if any(source and source.author == Author.MODEL for source in sources):
                return session_id
    return ""


def is_beside(known: Sequence[Seen], lines: frozenset[bytes], has_tools: bool, text: str) -> bool:
    """Whether a request with these instructions is beside the conversation of which these texts are known.

    A prompt may change from request to request: a third of its lines is the same, or an earlier one was. Where there
    was none, one may come: a summary of what was cut off. An order to sum a conversation up offers no tools.
    """
    prompts = [(one.lines, one.has_tools) for one in known if one.lines is not None]
    alike = [tools for other, tools in prompts if _are_alike(lines, other)]
    if not prompts or (alike and (has_tools or not all(alike))):
        return False
    return not alike or len(text) > LONGEST_WITHOUT_TOOLS


def is_always_beside(seen: Sequence[Seen], lines: frozenset[bytes]) -> bool:
    """Whether these very instructions always came with what the person said to another prompt in the same moment, and
    no conversation went on with them: a guardrail, which may be asked before the conversation is."""
    asked = [one for one in seen if one.author == Author.PERSON and one.lines is not None]
    mine = [one for one in asked if one.lines == lines]
    return bool(lines and mine) and all(any(_is_beside_of(one, other) for other in asked) for one in mine)


def is_about_quoted(judged: Judged, seen: Sequence[Seen], lines: frozenset[bytes]) -> bool:
    """Whether it quotes what the person said in a conversation, with other instructions than that has: it asks for a
    title of it. One that shows a conversation of its own may quote another."""
    if judged.now is None or not lines or any(one.role == Role.ASSISTANT for one in judged.messages):
        return False
    quoted = set(map(seen_texts.whole_of, authorship.quotations(judged.messages[judged.now].content)))
    told = [one for one in seen if one.author == Author.PERSON and one.session is not None and one.whole in quoted]
    return any(lines.isdisjoint(one.lines or ()) for one in told)


def _is_beside_of(one: Seen, other: Seen) -> bool:
    """Of two with the same words, the one that is kept nowhere; of one conversation the first, as the other goes on."""
    if (
        one.whole != other.whole
        or other.session is None
        or _are_alike(one.lines or frozenset(), other.lines or frozenset())
    ):
        return False
    goes_on = one.session == other.session and one.seen_at < other.seen_at and other.has_tools >= one.has_tools
    is_first = one.session is None or goes_on
    return is_first and abs(one.seen_at - other.seen_at) < SAME_MOMENT


def _are_alike(lines: frozenset[bytes], other: frozenset[bytes]) -> bool:
    if not other:
        return True
    return 3 * len(lines & other) >= min(len(lines), len(other))
