"""What code finds wrong with a summary, and what it must not mind; each kind of flaw beside its like without it."""

from memories.episodes import quality as episode_quality
from memories.episodes.quality import BOILERPLATE, COPY, EMPTY, FLAWS, INVENTED, LANGUAGE, SHORT, judge
from memories.llm.prompts.episode_summary import EXAMPLES
from memories.models import Role
from memories.text.transcript import TranscriptTurn
from tests.each import each
from tests.episodes.talk import LEAK, TRIP, fed, turn

GOOD = [
    (
        LEAK,
        "Kitchen tap drips; instead of a plumber for 180 euros a BK-4420 cartridge was ordered, to be fitted Saturday.",
    ),
    (LEAK, "Will change the cartridge of a Borgholm tap without the plumber."),
    (LEAK, "Dripping tap"),
    (LEAK, "The user asked about a dripping tap and decided to repair it."),
    (TRIP, "国庆带父母游桂林五天：不爬山，坐船游漓江，今晚买十月二号船票，阳朔住三晚，母亲吃素。"),
    (TRIP, "用户咨询带爸妈去桂林的行程，决定坐船游漓江。"),
    (TRIP, "桂林行程：阳朔三晚，桂林一晚"),
]
BAD = [
    (LEAK, "", {EMPTY}),
    (LEAK, "A tap", {SHORT}),
    (TRIP, "游桂林", {SHORT}),
    (LEAK, "Chat", {SHORT, BOILERPLATE}),
    # Of another conversation.
    (LEAK, "Bought a racing bike for the commute and tried on helmets.", {INVENTED}),
    (TRIP, "讨论了如何给猫咪剪指甲，并预约了宠物医院。", {INVENTED}),
    # In the other language.
    (TRIP, "Plans five days in Guilin with parents who cannot climb, by boat along the Li river.", {LANGUAGE}),
    (LEAK, "厨房水龙头漏水，买了阀芯自己换，不请水管工。", {LANGUAGE}),
    # Word for word: one turn, several turns, with another beginning.
    (LEAK, LEAK[0].text, {COPY}),
    (LEAK, f"{LEAK[0].text[:95]} {LEAK[4].text}", {COPY}),
    (LEAK, f"He said: {LEAK[0].text.upper()}", {COPY}),
    (TRIP, f"{TRIP[0].text}{TRIP[4].text}", {COPY}),
    (LEAK, LEAK[3].text, {COPY}),
]
# Nothing but words that fit any conversation.
PLAIN = [
    "The user asked a question.",
    "the user asked a question and the assistant answered it",
    "User asked questions; assistant provided helpful answers and detailed explanations.",
    "A conversation between the user and the assistant.",
    "The user requested help with an issue, and the agent gave several suggestions to resolve it.",
    "The user greeted the assistant and they had a friendly chat about various topics.",
    "Discussion of a general topic with some related information.",
    "The two people discussed different things and thanked each other.",
    "The customer inquired about something and received a response.",
    "用户咨询了问题",
    "用户咨询了一些问题，助手进行了回答。",
    "用户向助手提出了问题，并得到了解答。",
    "用户和助手进行了友好的交流。",
    "本次对话中用户提出需求，助手给出了相应的建议。",
    "双方讨论了相关话题，助手提供了帮助。",
    "用户询问了某个问题，助手作出了详细的说明和解释。",
    "用户打招呼后，与助手进行了简短的聊天",
]


@each(("turns", "summary"), GOOD)
def test_a_fair_summary_has_no_flaw(turns: list[TranscriptTurn], summary: str) -> None:
    assert judge(summary, turns) == episode_quality.SummaryQuality(1.0, ())


@each(("turns", "summary", "flaws"), BAD)
def test_a_flaw_is_found(turns: list[TranscriptTurn], summary: str, flaws: set[str]) -> None:
    judged = judge(summary, turns)
    assert set(judged.flaws) == flaws
    assert judged.quality == min(FLAWS[flaw].quality for flaw in flaws) < 0.5


@each("summary", PLAIN)
@each("turns", [LEAK, TRIP])
def test_words_that_fit_any_conversation_say_nothing(turns: list[TranscriptTurn], summary: str) -> None:
    assert BOILERPLATE in judge(summary, turns).flaws


@each("summary", [*(text for _, text in GOOD), "The user asked a question about taps.", "用户咨询了机票问题"])
def test_one_word_of_its_own_is_enough_not_to_be_plain(summary: str) -> None:
    assert BOILERPLATE not in judge(summary, LEAK).flaws


@each(
    ("said", "summary"),
    [
        (
            ["Book a table for two at Luigi's on Friday.", "Done, at seven."],
            "Book a table for two at Luigi's on Friday.",
        ),
        (["Remind me to water the plants on Sunday", "I will"], "Remind me to water the plants on Sunday"),
        (["帮我订周五晚上七点两个人的位子，靠窗", "订好了"], "帮我订周五晚上七点两个人的位子，靠窗"),
    ],
)
def test_a_short_conversation_is_told_with_its_own_words(said: list[str], summary: str) -> None:
    assert judge(summary, fed(*said)).flaws == ()


def test_a_short_quotation_in_a_long_conversation_is_no_copy() -> None:
    assert judge("Ordered it at the store in Hofgasse.", LEAK).flaws == ()
    assert judge(f"Repairs the tap alone: {LEAK[4].text}", LEAK).flaws == (COPY,)
    assert (
        judge(f"Repairs the dripping Borgholm tap without the plumber of 180 euros: {LEAK[4].text}", LEAK).flaws == ()
    )


def test_what_is_quoted_by_design_may_be_quoted() -> None:
    assert judge(LEAK[0].text, LEAK, is_quoted=True).flaws == ()
    assert judge("Tap", LEAK, is_quoted=True).flaws == (SHORT,)
    assert BOILERPLATE in judge("I have a question for you.", LEAK, is_quoted=True).flaws


@each(
    ("said", "summary", "is_flaw"),
    [
        # Three of four of the user's turns decide; what the assistant writes, and what has no letters, does not count.
        (["我要修水管", "Sure.", "先买阀芯", "Fine.", "周六装上", "Good."], "Fixes the pipe", True),
        (["我要修水管", "Sure.", "Buy the part", "Fine.", "周六装上", "Good."], "Fixes the pipe with a part", False),
        (["我要修水管", "Sure.", "42", "Fine.", "👍", "Good."], "Fixes the pipe", True),
        (["Please translate 我要修水管 for the plumber of my landlord", "Here."], "翻译了我要修水管这句话", True),
        (
            ["Please translate 我要修水管 for the plumber of my landlord", "Here."],
            "Had the sentence 我要修水管 translated for the plumber",
            False,
        ),
        (["我想用 Docker Compose 部署 Nginx 反向代理", "好的"], "用 Docker Compose 部署 Nginx 反向代理", False),
        (["42", "43"], "Counts up to 43", False),
    ],
)
def test_the_persons_language_counts(said: list[str], summary: str, is_flaw: bool) -> None:
    assert (LANGUAGE in judge(summary, fed(*said)).flaws) is is_flaw


@each("example", EXAMPLES)
def test_what_is_copied_from_the_examples_of_the_prompt_is_invented(example: object) -> None:
    summary = EXAMPLES[0].answer["summary"]
    baking = fed("My bread kept collapsing because the dough rose too warm, 34 degrees", "Try 24 degrees for 8 hours")
    assert INVENTED in judge(summary, baking).flaws
    own = fed("My glimroot bread kept collapsing because the dough rose too warm for the fair in Vexholm", "24 degrees")
    assert judge(summary, own).flaws == ()


def test_only_what_a_model_is_shown_of_a_long_turn_counts() -> None:
    long = [turn(1, f"{'a ' * 600}Borgholm tap{' a' * 600}"), turn(2, "Fine", Role.ASSISTANT)]
    assert judge("Asked about a Borgholm tap", long).flaws == (INVENTED,)
    short = [turn(1, "a Borgholm tap"), turn(2, "Fine", Role.ASSISTANT)]
    assert judge("Asked about a Borgholm tap", short).flaws == ()


@each("text", ["!" * 50, "a" * 200, "ab " * 66, "的" * 200, "\u0301" * 60, "👍" * 40, "1 2 3 4 5 6 7 8"])
def test_whatever_it_says_it_is_judged(text: str) -> None:
    judged = judge(text, fed(*[text * 20] * 20))
    assert 0.0 <= judged.quality <= 1.0
    assert judge(text, []).quality <= 1.0


def test_every_flaw_has_an_objection() -> None:
    objections = {flaw.objection for flaw in FLAWS.values()}
    assert len(objections) == len(FLAWS) == 6
    assert all(objection == objection.strip(". ") for objection in objections)
