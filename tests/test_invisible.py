"""Characters that nobody sees: gone from prompts, contexts and pages, and everything that shows stays."""

import unicodedata
from typing import Any

from memories.context import rendering, window
from memories.invisible import CONTROLS, IGNORABLE, strip_invisible
from memories.llm.prompts import framing
from memories.models import Role, Turn
from memories.text.cleaning import clean, clean_lines
from tests.each import each

# The first and last of each range, and those that the ranges were written for.
NAMED = {0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180E, 0x180F, 0x200B, 0x200E, 0x202E, 0x2060}
NAMED |= {0x2063, 0x2064, 0x2066, 0x3164, 0xFE00, 0xFE0E, 0xFEFF, 0xFFA0, 0xFFF0, 0xFFF9, 0xFFFB, 0xE0001, 0xE0041}
NAMED |= {0xE0100, 0xE01EF}
UNSEEN = sorted(NAMED | {*(end for span in IGNORABLE + CONTROLS for end in span), 0x200C, 0x200D, 0xFE0F})
BREAKS = (0x2028, 0x2029)


def message(text: str) -> str:
    turn = Turn(role=Role.USER, content=text, parts=None, tool_calls=None, tool_call_id="", name="")
    return str(window.messages_of([turn])[0]["content"])


PLACES: dict[str, Any] = {
    "fact or episode as it is stored": clean,
    "profile as it is stored": clean_lines,
    "prompt": framing.escape,
    "attribute in a prompt": framing.escape_attribute,
    "context": rendering.one_line,
    "summary": rendering.render_summary,
    "messages": message,
}


@each("place", PLACES)
def test_none_is_told(place: str) -> None:
    for code in UNSEEN:
        assert chr(code) not in PLACES[place](f"a{chr(code)}b"), f"U+{code:04X}"
        assert "ab" in PLACES[place](f"a{chr(code)}b"), f"U+{code:04X}"


@each("place", [name for name in PLACES if name != "messages"])
@each("code", BREAKS)
def test_unusual_breaks_break_no_line(place: str, code: int) -> None:
    assert chr(code) not in PLACES[place](f"a{chr(code)}b")


@each(
    "text",
    [
        "👩‍👩‍👧 🏳️‍🌈 ❤️ ☀️ ©️ 1️⃣ #️⃣ 👍🏽",
        "می‌خواهم",
        "क्‍ष",
        "naïve 中文 日本語 한국어",
        "line\n\tbreak",
        "e\u0301",
    ],
)
def test_what_shows_stays(text: str) -> None:
    assert strip_invisible(text) == text


@each(
    ("text", "expected"),
    [
        ("a\ufe0fb", "ab"),
        ("❤\ufe0f\ufe0f\ufe0f", "❤\ufe0f"),
        ("1\ufe0f2", "12"),
        ("字\U000e0100", "字"),
        ("字\ufe00", "字"),
        ("می\u200c\u200d\u200cخ", "می\u200cخ"),
        ("e\u0301\u200d\u0301", "e\u0301\u0301"),
        ("שלום\u200d\u200fעולם", "שלוםעולם"),
        ("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", "🏴"),
    ],
)
def test_where_they_only_hide(text: str, expected: str) -> None:
    assert strip_invisible(text) == expected


def test_all_format_characters_are_known() -> None:
    """What Python calls a format character is ignorable, but for those that show something."""
    listed = {code for first, last in IGNORABLE + CONTROLS for code in range(first, last + 1)} | {0x200C, 0x200D}
    shown = {code for code in range(0x110000) if unicodedata.category(chr(code)) == "Cf"} - listed
    # Signs of Arabic and Syriac numbers, of Kaithi, hieroglyphs: each has a glyph of its own.
    assert all(unicodedata.name(chr(code)).split()[0] in ("ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN") for code in shown)
