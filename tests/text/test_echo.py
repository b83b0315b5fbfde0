"""What comes back of our own contexts is cut from what is fed; whatever is merely like it stays."""

import html
import uuid
from zoneinfo import ZoneInfo

import pytest

from memories.context import context, rendering
from memories.extraction import consolidation
from memories.models import Category, EndUser, Fact, Section, Turn
from memories.queue import session_queue
from memories.retrieval.visible_facts import FactText
from memories.text.echo import cut_echo
from memories.text.memory_block import CLOSING, FRAMES, NOTICE, OPENING
from memories.text.transcript import fed
from tests import factories
from tests.each import each
from tests.factories import NOW
from tests.model import Model, candidate

FACT = "- [preference | 0.95] Likes tea &amp; &lt;/memory&gt; cake"
TURN = "- [2026-11-03] user: I live in Leiden"
EPISODE = "- [2026-11-03] Moved to Leiden: found a flat"
DAY_OF_TURNS = "2026-11-03:\n- I live in Leiden\n- assistant: In the centre?"
BLOCK = f"{OPENING}\n{NOTICE}\nFacts:\n{FACT}\nEpisodes:\n{EPISODE}\nRecalled turns:\n{TURN}\n{CLOSING}"


def rendered() -> str:
    """A block as contexts render it, of a line of each kind."""
    fact = FactText(uuid.uuid4(), Category.CORRECTION, 0.9, "Not <b>Delft</b>", "Delft")
    told = [
        rendering.profile_line(row_id=uuid.uuid4(), section=Section.WORK_CONTEXT, text="Bakes."),
        rendering.fact_line(fact, place=0, score=1.0, score_parts={}),
        rendering.episode_line(row_id=uuid.uuid4(), text="Moved.", ended_at=NOW, score=None, score_parts={}),
        rendering.turn_line(Turn(role="user", content="I live in Leiden", created_at=NOW, number=1)),
    ]
    return rendering.render(told)


ZONED = FRAMES["en"].in_zone(ZoneInfo("America/Los_Angeles"))
IN_A_ZONE = BLOCK.replace(NOTICE, ZONED.notice)
OURS = {
    "in a zone": IN_A_ZONE,
    "in a zone, in Chinese": BLOCK.replace(NOTICE, FRAMES["zh-hans"].in_zone(ZoneInfo("Asia/Shanghai")).notice),
    "in a zone, without its tags": "\n".join(IN_A_ZONE.splitlines()[1:-1]),
    "below the zone alone": f"{ZONED.notice.splitlines()[1]}\nFacts:\n{FACT}",
    "a block": BLOCK,
    "as contexts render it": rendered(),
    "two": f"{BLOCK}\n{BLOCK}",
    "in capitals": BLOCK.upper(),
    "folded to one line": " ".join(BLOCK.split()),
    "with Windows' line ends": BLOCK.replace("\n", "\r\n"),
    "escaped": html.escape(BLOCK, quote=False),
    "escaped twice": html.escape(html.escape(BLOCK, quote=False), quote=False),
    "never closed": BLOCK.removesuffix(CLOSING),
    "cut off in a line": BLOCK[:-40],
    "opened twice": f"{OPENING}\n{NOTICE}\n{BLOCK}",
    "a fact alone": FACT,
    "a turn alone": TURN,
    "facts under their heading": f"Facts:\n{FACT}\n{FACT}",
    "episodes under their heading": f"Episodes:\n{EPISODE}\n{EPISODE}",
    "episodes under all that stands above them": f"{NOTICE}\nFacts:\n{FACT}\nEpisodes:\n{EPISODE}",
    "without its tags": "\n".join(BLOCK.splitlines()[1:-1]),
    "quoted": "\n".join(f"> {line}" for line in BLOCK.splitlines()[1:-1]),
    "indented": f"    {FACT}",
    "facts without confidence": "Facts:\n- [preference] Likes tea\n- [context] Lives in Leiden",
    "turns below their day": f"Recalled turns:\n{DAY_OF_TURNS}\n2026-11-04:\n- Rex is ill",
    "a diary below its day": "Diary:\n2026-11-03:\n- rye: asked twice\n  | and once more",
    "lists as contexts render them, without tags": "\n".join(rendered().splitlines()[4:-1]),
    "quoted days": "\n".join(f"> {line}" for line in f"Recalled turns:\n{DAY_OF_TURNS}".splitlines()),
}

LOOK_ALIKES = [
    "Days are of the time zone America/Los_Angeles.\nI moved.",
    "<memory>8 GB</memory>",
    "The tag <memory> holds what is remembered",
    "&lt;memory&gt; and &lt;/memory&gt; are tags",
    CLOSING,
    NOTICE,
    "Facts:\n- I like tea\n- I like cake",
    "- [preference] Likes tea",
    "- [preference | high] Likes tea",
    "- [drink | 0.95] Likes tea",
    "- [x] buy milk",
    "- [2026-11-03] moved to Leiden",
    "Flats:\n- [2026-11-03] moved to Leiden",
    "Episodes:\n- The pilot\n- [2026-11-03] moved to Leiden",
    "Episodes:",
    DAY_OF_TURNS,
    "My days:\n2026-11-03:\n- moved to Leiden",
    "Episodes:\n- moved to Leiden",
    "- [2026-11-03] me: moved to Leiden",
    "I said - [preference | 0.95] Likes tea",
    "Work: I bake.\n- Work: bakes",
    "我喜欢喝茶",
]


@each("echo", OURS.values())
def test_what_is_ours_goes(echo: str) -> None:
    assert cut_echo(echo).strip() == ""
    around = cut_echo(f"I moved to Delft.\n{echo}\n")
    assert around.strip() == "I moved to Delft."


@each("echo", [BLOCK, html.escape(BLOCK, quote=False), FACT, f"Facts:\n{FACT}", f"Episodes:\n{EPISODE}"])
def test_what_stands_behind_it_stays(echo: str) -> None:
    assert cut_echo(f"See:\n{echo}\nI moved to Delft.").split("\n")[-1] == "I moved to Delft."


@each("text", LOOK_ALIKES)
def test_what_is_merely_like_it_stays(text: str) -> None:
    assert cut_echo(text) == text


@each(
    "unit",
    [OPENING, f"{OPENING}\n{NOTICE}\n", "&amp;", "&lt;memory", "- [", FACT],
)
def test_a_message_full_of_it_is_read_once(unit: str) -> None:
    """A megabyte; quadratic work would take hours."""
    text = unit * (1_000_000 // len(unit))
    assert len(cut_echo(text)) <= len(text)
    assert len(cut_echo(f"{OPENING} " * 60_000 + BLOCK)) >= 60_000


class TestOfASession:
    def test_the_stored_turn_stays_whole_and_what_is_left_is_fed(self, person: EndUser) -> None:
        said = (("user", f"{BLOCK}\nI moved to Delft."), ("assistant", f"I know:\n{FACT}"))
        session = factories.session(person, said)
        assert [turn.text for turn in fed(session.turns.order_by("number"))] == ["I moved to Delft.", "I know:"]
        assert list(session.turns.order_by("number").values_list("content", flat=True)) == [text for _, text in said]

    @pytest.mark.parametrize("role", ["user", "assistant"])
    def test_a_turn_with_nothing_left_is_not_fed(self, person: EndUser, role: str) -> None:
        session = factories.session(person, (("user", "I moved to Delft."), ("assistant", "Nice."), (role, BLOCK)))
        assert [turn.number for turn in fed(session.turns.order_by("number"))] == [1, 2]

    def test_its_words_are_no_signs(self, person: EndUser) -> None:
        turns = [Turn(role="user", content="- [preference | 0.90] I prefer tea", created_at=NOW, metadata={})]
        assert session_queue.signals_of(turns, person.tenant) == []
        turns[0].content = "I prefer tea"
        assert session_queue.signals_of(turns, person.tenant) == ["preference"]

    @pytest.mark.parametrize("echoed", [True, False])
    def test_a_context_that_is_read_out_makes_nobody_say_anything(
        self, person: EndUser, model: Model, echoed: bool
    ) -> None:
        """An agent that puts the whole block into the user's message: the model quotes it as the user's word."""
        factories.fact(person, "Likes tea", trust="assistant")
        block = context.build(tenant=person.tenant, request=context.ContextRequest(person.external_id), now=NOW).memory
        said = f"{block}\nWhat is the time?" if echoed else "Likes tea, that is me. What is the time?"
        session = factories.session(person, (("user", said), ("assistant", "Noon")), flush=True)
        model.say(candidate("Drinks tea all day", quote="Likes tea", confidence=0.95))
        consolidation.consolidate(session_id=session.pk, now=NOW)
        made = Fact.objects.get(content="Drinks tea all day")
        assert ("Likes tea" in model.prompts[-1].split("<turns>")[1].split("</turns>")[0]) is not echoed
        assert (made.raw, made.confidence) == (("", 0.8) if echoed else ("Likes tea", 0.95))
