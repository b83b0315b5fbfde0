"""Whose words a message of role user holds, as far as its text tells: harness texts, and what people really type."""

from memories.text.authorship import read
from memories.text.frames import slot_of
from tests.each import each
from tests.tables import rows
from tests.text.timing import takes_linear_time


def own(text: str) -> str:
    """What is left as the person's own words; "" where nothing is."""
    reading = read(text)
    if reading.author != "person":
        return ""
    return text if reading.own is None else "\n\n".join(text[start:end] for start, end in reading.own)


def table(name: str) -> list[list[str]]:
    return [row for row in rows(name) if not row[0].startswith("#")]


@each(
    ("text", "expected"),
    [
        # Blocks, whatever their names.
        ("<system-note>\nI row.\n</system-note>", ""),
        ("<env at='x'>\nI row.\n</env>\n\nI ski.", "I ski."),
        ("I ski.\n<a-b.c>\n<a-b.c>I row.</a-b.c>\n</a-b.c>\nAnd sail.", "I ski.\n\nAnd sail."),
        ("Rules of this project:\n\n<INSTRUCTIONS>\nI row.\n</INSTRUCTIONS>", ""),
        ("<<<BEGIN QUOTED TEXT>>>\nI row.\n<<<END QUOTED TEXT>>>\nI ski.", "I ski."),
        # Other marks than those of HTML, names in other scripts, attributes on lines of their own.
        ("[notes]\nI row.\n[/notes]\n\nI ski.", "I ski."),
        ("[quote=Ann]I row.[/quote]\nI ski.", "I ski."),
        ("{{notes}}\nI row.\n{{/notes}}\nI ski.", "I ski."),
        ("<|notes|>\nI row.\n<|/notes|>\nI ski.", "I ski."),
        ("[INST] <<SYS>>\nI row.\n<</SYS>>\n\nI ski. [/INST]", "I ski."),
        ("<<SYS>>\nI row.\n<</SYS>>\nI ski.", "I ski."),
        ("<!-- BEGIN NOTES -->\nI row.\n<!-- END NOTES -->\nI ski.", "I ski."),
        ("<!-- I row. -->\nI ski.", "I ski."),
        ("<资料>\n我划船。\n</资料>\n我滑雪。", "我滑雪。"),
        ("【资料】\n我划船。\n【/资料】\n我滑雪。", "我滑雪。"),
        ('<notes\n  from="Ann">\nI row.\n</notes>\nI ski.', "I ski."),
        ('Read this.\n\n"""\nI row.\n"""\n\nI ski.', "Read this.\n\nI ski."),
        # What was typed stands in them.
        ("<user_query>\nI row.\n</user_query>", "I row."),
        ("<command-name>/x</command-name>\n<command-args>I row</command-args>", "I row"),
        # Rules and labels.
        ("Notes:\n-----\nI row.\n-----\nI ski.", "Notes:\n\nI ski."),
        ("Documents:\nI row.\n\nQuestion: I ski. Where?\nAnswer:", "I ski. Where?"),
        ("Use the following.\nI row.\n\nQuestion: I ski. Where?\nAnswer:", "I ski. Where?"),
        ('<资料>\n我划船。\n</资料>\n\n问题："""我滑雪。去哪里？"""', "我滑雪。去哪里？"),
        ("参考资料：\n我划船。\n\n问题：我滑雪。去哪里？\n回答：", "我滑雪。去哪里？"),
        ("Kontext:\nIch rudere.\nFrage: Ich laufe Ski. Wo?\nAntwort:", "Ich laufe Ski. Wo?"),
        ("[[ ## history ## ]]\nI row.\n\n[[ ## question ## ]]\nI ski.\n\nRespond with `[[ ## answer ## ]]`.", "I ski."),
        ("Observation:\nI row.", ""),
        ("Observation: I row.\nNew task:\nI ski.", "I ski."),
        ("工具结果：我划船。", ""),
        # A conversation that is told again.
        ("Name it:\nUser: I row.\nAssistant: Fine.\nI sail.", ""),
        ("What is odd here?\n\n用户：我划船。\n助手：好。", "What is odd here?"),
        # Orders to mend a form.
        ("2 validation errors: `name` is required. Fix them and answer again.", ""),
        ("Your reply is no valid JSON. Return only valid JSON.", ""),
        ("Die Antwort ist ungültig: Feld fehlt. Korrigiere das JSON.", ""),
        ("JSON 格式无效，请修正后重新输出。", ""),
        # A shell's quotation marks.
        ('"I row and I ski."', "I row and I ski."),
        ('"""I row and I ski."""', "I row and I ski."),
        ("`I row and I ski.`", "I row and I ski."),
        ("「私は船を漕ぐ」", "私は船を漕ぐ"),
    ],
)
def test_what_a_program_puts_there(text: str, expected: str) -> None:
    assert own(text) == expected


@each(
    "text",
    [
        "I row.",
        "I use <b> in my page, and x < y > z. I row.",
        "<p>I row.</p>",
        "<b>I row</b> and <i>I ski</i>.",
        "[b]I row[/b] and I ski.",
        "[x] I row\n[ ] I ski",
        "{{name}} stands in my template. I row.",
        "In C I shift by x <<SYS>> 2. I row.",
        "<!-- is half a comment. I row.",
        "What does <!-- x --> hide? I row.",
        "```\n<!-- x -->\n```\nI row.",
        '"""I row""" and """I ski"""',
        "My answer: I row.\nYour question: who rows?",
        "Question for you: I row, is that sport?",
        "I wrote:\n1. rowing\n2. skiing\nWhat is missing?",
        "Context: I row in Ghent.\nWhat can I do in winter?",
        'He said "I row" and I said "I ski".',
        "My JSON has an error: the field is missing. Can you fix it and answer again?",
        "It does not answer again, fix the door.",
        "Dear Ann,\n\nI row.\n\n--\nBea",
        "Title\n=====\nI row.",
        "Ann: I row.\nBea: I ski.",
        "User: is what I call myself.",
        "我的问题：我划船，冬天怎么办？",
        "```\n<note>\nI row.\n</note>\n```\nWhy does this not parse?",
        "```\nprint(row)\n```",
        "",
        "   ",
    ],
)
def test_what_people_type_is_theirs(text: str) -> None:
    assert own(text) == text


def test_their_own_words_beside_code_and_pages_stay() -> None:
    text = "How do I centre this?\n<div class='x'>\n  <p>hello</p>\n</div>\nI use Firefox, and I am new to CSS."
    assert own(text) == "How do I centre this?\n\nI use Firefox, and I am new to CSS."


@each("text", ["Task: I row. Plan it.", "Current query: I row. Plan it.", "任务：我划船。"])
def test_a_label_at_the_beginning_is_doubtful(text: str) -> None:
    assert read(text).is_doubtful
    assert not read(own(text)).is_doubtful


def test_of_what_people_type_little_is_lost() -> None:
    lost, doubtful = [], []
    for _language, said, text in table("typed"):
        if said not in own(text):
            lost.append(text)
        elif read(text).is_doubtful:
            doubtful.append(text)
    assert len(lost) <= 6, lost
    assert len(doubtful) <= 24, doubtful


@each(("text", "claim"), [(text, claim) for _language, claim, text in table("harness")])
def test_a_claim_in_the_material_is_nobodys_or_doubtful(text: str, claim: str) -> None:
    assert claim in text
    assert claim not in own(text) or read(text).is_doubtful


MARKS = [
    "<a>", "<a>\n", "Context:\n", "- ", '"', "<task>\n", "=BEGIN\n", "[x]: y\n", "[x\n",
    "{\n", "Q: a\n", "user\n\n", "\n---\n\n",
    "```\nContext:\n", "<b>x</b> y\n<i>\n",
    "10:10 user: a\n", "# Documents\n", " \n", "I: ", "[tool ", "：\n", "10:10 10:10 ",
    "<x>\n</x>\nTask:\n", "Sources:\n\n",
    "[x]\n", "[/x]\n[x]", "{{x}}\n", '"""\n', '"""\nx\n',
    "<<x>>\n", "[inst]\n", "[inst] <<x>>", "<!--", "<!--\n", "<!-- -->\n", "<!-- BEGIN\n",
]  # fmt: skip


@each("mark", MARKS)
def test_long_texts_of_marks_take_linear_time(mark: str) -> None:
    assert takes_linear_time(lambda text: read(text + '</a></task>"role"</z>'), mark, 20_000)


@each("tags", ["</a0>" + "<a0>\n" * 40_000, "".join(f"<a{at}>\n" for at in range(20_000)) + "</z>"])
def test_tags_without_an_end_are_read(tags: str) -> None:
    assert own(tags) == tags


class TestFrames:
    HEAD = "You are one of three helpers in this office. The order is:\n"
    TAIL = "\nWrite nothing but the result, and no word of greeting."

    @each(
        ("text", "other", "left"),
        [
            (HEAD + "I row.", HEAD + "Bake it.", "I row."),
            ("I row." + TAIL, "Bake it." + TAIL, "I row."),
            (HEAD + "I row." + TAIL, HEAD + "Bake it." + TAIL, "I row."),
            # Words with which what was put in begins, or ends, each time.
            (HEAD + "I row." + TAIL, HEAD + "I bake." + TAIL, "I row."),
            ("I row for me." + TAIL, "Bake it for me." + TAIL, "I row for me."),
            # Of two slots the last.
            (HEAD + "A b c.\nAnswer this:\nI row." + TAIL, HEAD + "D e f.\nAnswer this:\nBake." + TAIL, "I row."),
            # The same text again, and two that share too little.
            (HEAD + "I row.", HEAD + "I row.", HEAD + "I row."),
            (HEAD + "I row.", HEAD.replace("\n", "\r\n") + "I row.", HEAD + "I row."),
            ("I live in Ghent.", "I live in Bruges.", "I live in Ghent."),
        ],
    )
    def test_the_slot_that_varies_and_stands_last(self, text: str, other: str, left: str) -> None:
        for passage in slot_of(text, [other]):
            assert passage in text
            text = text.replace(passage, "", 1)
        assert text.strip() == left
