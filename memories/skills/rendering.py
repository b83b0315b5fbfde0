"""SKILL.md: the file of a skill, in the format that agents read (YAML front matter with `name` and `description`)."""

import json
import re
import unicodedata
from collections.abc import Iterable

from memories.invisible import strip_invisible
from memories.models.memories.skills import LONGEST_NAME, SkillText

Section = SkillText.Section
# In the order of the file, with their headings.
_HEADINGS = ((Section.STEP, "Steps"), (Section.CHECK, "Checks"), (Section.PITFALL, "Pitfalls"))
_LONGEST_DESCRIPTION = 1_024
# What YAML reads as a text without quotes.
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]*")
_NO_NAMES = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_NO_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
_NOT_IN_NAME = re.compile(r"[^a-z0-9]+")


def skill_md(name: str, texts: Iterable[SkillText]) -> str:
    """The file of these texts, which are in their order."""
    found = list(texts)
    by_section = {section: [one_line(one.text) for one in found if one.section == section] for section in Section}
    title = " ".join(by_section[Section.TITLE]) or name
    described = description(found) or title
    # A JSON string is a YAML string, whatever is in it. Without quotes some names are a date, a number or a switch.
    shown = name if _PLAIN_NAME.fullmatch(name) and name not in _NO_NAMES else json.dumps(name)
    front = ["---", f"name: {shown}", f"description: {json.dumps(described, ensure_ascii=False)}", "---"]
    lines = [*front, "", f"# {title}"]
    for section, heading in _HEADINGS:
        if by_section[section]:
            lines += ["", f"## {heading}", ""]
            marks = (f"{at}." if section == Section.STEP else "-" for at in range(1, len(by_section[section]) + 1))
            lines += [f"{mark} {text}" for mark, text in zip(marks, by_section[section], strict=True)]
    return "\n".join(lines) + "\n"


def description(texts: Iterable[SkillText]) -> str:
    """What a list of skills says of it: its title and when it is of use."""
    found = [one_line(one.text) for one in texts if one.section in (Section.TITLE, Section.WHEN)]
    ended = (text if text.endswith((".", "。", "!", "?")) else f"{text}." for text in found)
    return " ".join(ended)[:_LONGEST_DESCRIPTION]


def one_line(text: str) -> str:
    """The text where it can neither begin a heading, a list or a front matter, nor hide, nor break YAML."""
    return " ".join(_NO_CHARACTERS.sub("", strip_invisible(text)).split())


def slug(text: str) -> str:
    """A name for a folder: of the Latin letters and digits of a text, or empty."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_NAME.sub("-", plain).strip("-")[:LONGEST_NAME].strip("-")
