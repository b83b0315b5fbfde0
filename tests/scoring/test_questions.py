"""What a question is about: the words that speak of the talk and of the answer are left out (docs/retrieval.md)."""

from hypothesis import given
from hypothesis import strategies as st

from memories.scoring.questions import names, subject, tells
from memories.scoring.ranking import query_texts
from tests.each import each


@each(
    ("question", "about"),
    [
        ("Can you give me a short summary of how I trained for the race?", "how I trained for the race?"),
        ("Please summarise my plans for the garden so far.", "my plans for the garden ."),
        ("Could you tell me when the rent is due?", "when the rent is due?"),
        (
            (
                "List the order in which I brought up different parts of the move across our earlier chats. "
                "Name only three items."
            ),
            "the move .",
        ),
        ("What have we discussed about the kitchen, in order?", "What have about the kitchen ?"),
        (
            "How many guests did I invite in total across all our conversations?",
            "How many guests did I invite in total ?",
        ),
        ("Where does Anna live? Keep it short.", "Where does Anna live?"),
        ("请帮我总结一下我的装修计划", "我的装修计划"),
        ("在我们之前的对话中，安娜住在哪里？", "安娜住在哪里？"),
        ("安娜去过哪些城市？只列出三个城市。", "安娜去过哪些城市？"),
    ],
)
def test_words_around_the_subject_are_left_out(question: str, about: str) -> None:
    assert subject(question) == about


@each(
    "question",
    [
        "Where do I live?",
        "How do I store users in my session table?",
        "Which colour did I pick in our chat app?",
        "What did I learn in my French conversation class?",
        "Is my passport in order?",
        "Who does the list belong to?",
        "Show jumping: when did I start?",
        "Walk the dog when?",
        "Who gave the summary at work?",
        "Do I want only three items on the menu?",
        "Name only three items.",
        "我昨天的会议总结是什么？",
        "谁列出了名单？",
        "我只要三个苹果吗？",
        "我们的对话框是什么颜色？",
        # Nothing else is left.
        "Can you tell me so far?",
        "我们的对话中，",
        "",
        "   ",
    ],
)
def test_other_questions_stay_as_they_are(question: str) -> None:
    assert subject(question) == question


def test_a_query_is_scored_by_its_subject() -> None:
    assert query_texts(" Can you tell me where I live? ") == ["where I live?"]


@each(
    ("text", "named"),
    [
        ("Does Ana live in New York or in Leiden?", ["Ana", "New York", "Leiden"]),
        ("Where do I live? Who is Ana?", ["Ana"]),
        ("fastify or GitHub Actions, on k8s with RTX4090", ["GitHub Actions", "k8s", "RTX4090"]),
        (
            "does the MongoDB TypeScript API know the roads of Open Street Map too",
            ["MongoDB", "TypeScript", "API", "Open Street Map"],
        ),
        ("I said I'm new, I\u2019ll learn", []),
        ("Where does María work, in São Paulo?", ["María", "São Paulo"]),
        ("用Python写一个快速排序，像GitHub那样", ["Python", "GitHub"]),
        ("我住在哪里？", []),
        ("TypeScript", ["TypeScript"]),
        ("Leiden?", []),
        ("WHERE DO I LIVE NOW", []),
        ("What Does Ana Like Best", []),
        ("2+2? 3.5 1966 at 3pm on the 2nd", []),
        ("", []),
    ],
)
def test_what_is_written_as_a_name(text: str, named: list[str]) -> None:
    assert names(text) == named


@given(st.text(max_size=60))
def test_names_are_found_in_any_text(text: str) -> None:
    assert all(part in text for name in names(text) for part in name.split(" "))


_PIECES = st.sampled_from([*"?. ，。请只我们", "list ", "only ", "in our ", "chats ", "我们的对话中", "so far"])


@given(st.lists(_PIECES, max_size=30).map("".join))
def test_something_always_stays(question: str) -> None:
    assert not question.strip() or subject(question).strip()


@each(
    "text",
    [
        "I let the neighbours borrow the ladder again, and my weekend is gone.",
        "Somehow the cellar flooded while we were at the lake, and nobody noticed for a day.",
        "When the letter came, my hands would not stop shaking.",
        "My brother sold the boat that our father built, which was hard to watch.",
        "After all these years I can't believe how calm the mornings are",
        "我昨天又答应替同事值夜班，现在累得不行。",
        "咱们把老房子的钥匙交给了新房东，心里空落落的",
    ],
)
def test_people_tell_of_themselves(text: str) -> None:
    assert tells(text)


@each(
    "text",
    [
        "",
        "my allergies and medication",
        "the kite that flew in June 2023 over the lake",
        "Which of my cousins lives near the harbour now?",
        "what did I say about the garden last spring",
        "On 8 May 2023, what did we cook for the guests",
        "Where is the spare key that I hid last year",
        "I am packing for the trip tomorrow. What do I always forget?",
        "Remind me of the restaurant that my sister liked so much.",
        "Please find a present that my grandmother would like to get.",
        "I want to know whether my passport is still valid this summer.",
        "I was wondering when we moved into the house by the river.",
        "Could you plan our weekend in the mountains for me",
        "我上次说过的那家面馆叫什么名字来着",
        "请把我去年的旅行都整理成一张清单。",
        "帮我想想周末带我爸妈去吃点好的。",
        "我妈的生日是不是快到了，我准备好礼物了吗",
    ],
)
def test_who_asks_tells_nothing(text: str) -> None:
    assert not tells(text)


@given(st.text(alphabet="I my,.?!我 请吗wheretolsdip'\n", max_size=80))
def test_any_text_tells_or_asks(text: str) -> None:
    assert not (tells(text) and "?" in text)
