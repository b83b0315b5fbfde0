"""The decay curve: where it starts, bends, jumps and ends, by tables of cases; and what the pages draw."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories import audit, conf
from memories.admin.facts.decay_curve import LEARNED, MENTIONED, RECALLED, Curve, Phase, curve_of, draw, with_recall
from memories.admin.site.wording import day_of
from memories.audit import Actor
from memories.models import ActorKind, Episode, Fact, FactRevision
from memories.scoring.decay import DecayInput, forget_at
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.each import each

NOW = datetime(2026, 11, 3, tzinfo=UTC)
BELOW = 0.2
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def phase(
    days: float, *, importance: float = 0.8, cause: str = LEARNED, kept: bool = False, mentions: int = 1
) -> Phase:
    return Phase(ago(days), DecayInput(importance, ago(days), mentions, "goal"), kept, cause)


def curve(*phases: Phase, live: bool = True) -> Curve:
    last = phases[-1]
    numbers = conf.hub_rules()
    end = None if last.kept else forget_at(last.memory, numbers, below=BELOW)
    return draw(phases, numbers, now=NOW, below=BELOW, forget_at=end, live=live)


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+),([\d.-]+)", path)]


def test_it_stays_level_during_the_grace_then_falls_to_the_threshold() -> None:
    drawn = curve(phase(10))
    past, ahead = points(drawn.past), points(drawn.ahead)
    assert {y for _, y in past} == {past[0][1]}
    assert [y for _, y in ahead] == sorted(y for _, y in ahead)
    # 30 days of grace and 180 of decay (rules.md, 7.1), from ten days ago.
    assert drawn.end
    assert drawn.end.moment == NOW + timedelta(days=200)
    assert f"{ahead[-1][1]:.2f}%" == drawn.threshold == drawn.end.top
    assert f"{past[-1][0]:.2f}%" == drawn.today


@each(
    ("phases", "left"),
    [
        ([phase(10)], 0.8),
        ([phase(120)], 0.4),
        ([phase(120, kept=True)], 0.8),
        ([phase(400), phase(120, cause=MENTIONED)], 0.4),
        ([phase(400), phase(120, cause=MENTIONED, mentions=2)], 0.8 * 2**-0.5),
    ],
)
def test_it_says_what_is_left(phases: list[Phase], left: float) -> None:
    assert curve(*phases).left == pytest.approx(left)


def test_a_mention_lifts_it_where_it_stood() -> None:
    drawn = curve(phase(120), phase(30, cause=MENTIONED))
    at = [y for x, y in points(drawn.past) if x == pytest.approx(float(drawn.dots[1].left[:-1]), abs=0.01)]
    assert len(at) == 2
    assert at[1] < at[0]
    assert [dot.cause for dot in drawn.dots] == [LEARNED, MENTIONED]


def test_a_recall_reinforces_what_follows() -> None:
    recalled = with_recall([phase(120)], ago(20))
    assert [one.cause for one in recalled] == [LEARNED, RECALLED]
    assert curve(*recalled).left == pytest.approx(0.8)
    # One that is older than the last mention changes nothing afterwards.
    early = with_recall([phase(120), phase(10, cause=MENTIONED)], ago(50))
    assert [one.cause for one in early] == [LEARNED, RECALLED, MENTIONED]
    assert early[-1].memory.last_reinforced == ago(10)


def test_what_is_kept_has_no_end() -> None:
    drawn = curve(phase(120), phase(30, cause="", kept=True))
    assert drawn.end is None
    assert len({y for _, y in points(drawn.ahead)}) == 1


def test_what_is_not_live_has_no_time_to_come() -> None:
    drawn = curve(phase(120), live=False)
    assert (drawn.ahead, drawn.end, drawn.today) == ("", None, "100.00%")


@each(
    "phases",
    [
        [phase(0)],
        [phase(-1)],
        [phase(3650)],
        [phase(10, importance=0.0)],
        [phase(10, importance=1.0)],
        [phase(120)] * 3,
    ],
)
def test_every_place_is_on_the_plot(phases: list[Phase]) -> None:
    drawn = curve(*phases)
    for x, y in [*points(drawn.past), *points(drawn.ahead)]:
        assert 0 <= x <= 100
        assert 0 <= y <= 100
    for dot in [*drawn.dots, *([drawn.end] if drawn.end else [])]:
        assert 0 <= float(dot.left[:-1]) <= 100


def revised(fact: Fact, *, days: float, verb: str = "reinforce", **over: Any) -> None:
    before = audit.snapshot(fact)
    for name, value in over.items():
        setattr(fact, name, value)
    fact.version += 1
    fact.save()
    audit.revise(fact=fact, verb=verb, actor=STAFF, before=before, reason="", now=ago(days))


def rows_of(fact: Fact) -> list[FactRevision]:
    return list(FactRevision.objects.filter(fact=fact).order_by("-version"))


@pytest.mark.django_db
class TestOfAFact:
    @pytest.fixture
    def fact(self) -> Fact:
        return factories.fact(factories.end_user(), category="goal", importance=0.8, now=ago(200))

    def test_follows_its_revisions(self, fact: Fact) -> None:
        audit.revise_new([fact], verb="extract", actor=STAFF)
        revised(fact, days=90, last_confirmed_at=ago(90), mentions=2)
        revised(fact, days=50, verb="pin", pinned=True)
        drawn = curve_of(fact, rows_of(fact), now=NOW)
        assert [dot.cause for dot in drawn.dots] == [LEARNED, MENTIONED]
        assert drawn.left == pytest.approx(0.8)

    def test_begins_before_the_first_revision_that_is_told(self, fact: Fact) -> None:
        revised(fact, days=90, last_confirmed_at=ago(90))
        drawn = curve_of(fact, rows_of(fact), now=NOW)
        assert drawn.start == ago(200)
        assert [dot.cause for dot in drawn.dots] == [LEARNED, MENTIONED]

    def test_is_drawn_without_revisions(self, fact: Fact) -> None:
        assert curve_of(fact, [], now=NOW).left == pytest.approx(0.8 * 2 ** (-170 / 90))

    def test_of_a_profile_does_not_fade(self, fact: Fact) -> None:
        fact.key = "profile.travel.seat"
        audit.revise_new([fact], verb="extract", actor=STAFF)
        for revisions in ([], rows_of(fact)):
            assert curve_of(fact, revisions, now=NOW).left == pytest.approx(0.8)

    def test_is_on_its_page_with_its_figures_in_a_table(self, admin: Client, fact: Fact) -> None:
        Fact.objects.update(last_recalled_at=timezone.now() - timedelta(days=2))
        page = text_of(admin.get(page_of(fact)))
        assert 'class="decay-past" d="M' in page
        table = page[page.index("Decay") : page.index("</table>")]
        assert all(word in table for word in ("Learned", "Recalled", "80 %"))

    def test_the_end_of_its_days_is_a_date_while_it_lives(self, admin: Client, fact: Fact) -> None:
        def end() -> str:
            days = text_of(admin.get(page_of(fact))).split('class="decay-days"')[1].split("</div>")[0]
            return re.sub("<[^>]+>", "", days.split("<span>")[2])

        now = timezone.now()
        Fact.objects.update(created_at=now, last_confirmed_at=now, forget_at=now + timedelta(days=210))
        assert end() == day_of(now + timedelta(days=210))
        Fact.objects.update(pinned=True, forget_at=None)
        # What never fades is shown for 90 days more.
        assert end() == day_of(now + timedelta(days=90))
        Fact.objects.update(status="trashed", trashed_at=now)
        assert end() == "today"


def test_an_episode_has_one_too(admin: Client) -> None:
    session = factories.session(factories.end_user())
    episode = factories.episode(session, now=timezone.now() - timedelta(days=60))
    page = text_of(admin.get(page_of(episode)))
    assert "Decay" in page
    assert "decay-forgotten" in page
    Episode.objects.update(pinned=True, forget_at=None)
    assert "decay-forgotten" not in text_of(admin.get(page_of(episode)))
