"""The simulated year: its table is what docs/forgetting.md shows, and looking less often ends the same."""

import re
from xml.etree import ElementTree

import pytest

from evals.fading import page
from evals.fading.__main__ import PAGE, PICTURE
from evals.fading.year import GONE, LAST, STORIES, live

# The days of the table, and one between what decays on day 210 and what an operator restores on day 220.
LOOKS = (90, 215, LAST)


@pytest.mark.django_db
def test_seldom_nights_end_as_the_page_says() -> None:
    year = live(nights=LOOKS)
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in PAGE.read_text("utf-8").splitlines()}
    for story in STORIES:
        told = rows[story.name].split(" | ")[1:3]
        seen = page.table(year).splitlines()[2 + STORIES.index(story)].split(" | ")[1:3]
        # What is out of contexts is so in both; the trash is emptied on nights alone.
        assert [_out(text) or text for text in seen] == [_out(text) or text for text in told], story.name


def test_the_picture_has_a_curve_for_each_of_the_five() -> None:
    picture = ElementTree.parse(PICTURE).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{space}polyline")) == 5
    named = {text.text for text in picture.findall(f"{space}text")}
    assert set(page.CURVES) <= named
    assert not re.search(r"https?://(?!www\.w3\.org)", PICTURE.read_text("utf-8"))


def _out(text: str) -> str:
    return "out" if text in (GONE, "in the trash") else ""
