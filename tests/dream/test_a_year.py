"""A year of dreams, one every fifteen days: files stay within their bounds, also with a model that only adds."""

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings

from memories.dream import dreaming
from memories.dream.proposals import LONGEST_FILE
from memories.forgetting import decay
from memories.models import DecayPass, Dream, DreamedEpisode, DreamEdit, FileVersion, MemoryFile
from tests import factories
from tests.dream.dreaming import dreamer, edit, edits, text_of
from tests.factories import NOW
from tests.model import Model, install

pytestmark = pytest.mark.django_db
# Twelve months of thirty days.
DAYS, EVERY = 360, 15
DAY = timedelta(days=1)
LINE = "Day {}: told of a plan, of what came of it, and of what comes next in that matter.\n"


def test_files_stay_within_their_bounds(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    model = install(settings, monkeypatch)
    person = dreamer(dream_hours=EVERY * 24)
    session = factories.session(person, agent_id="bot")
    for day in range(1, DAYS + 1):
        now = NOW + day * DAY
        if day % 2:
            place: dict[str, Any] = {"first_number": day, "last_number": day, "now": now - timedelta(hours=9)}
            factories.episode(session, f"Plan of day {day}", **place)
        if day % EVERY == 1:
            model.answers.append(partial(answer, model))
        # The day before is too early.
        if day % EVERY in (0, 1):
            assert not dreaming.run_slice(now=now, seconds=300)
    assert Dream.objects.count() == DAYS // EVERY
    assert not Dream.objects.exclude(state="applied").exists()
    read = DreamedEpisode.objects.count()
    last = DAYS - EVERY
    assert read == (last + 1) // 2
    assert max(len(text) for text in FileVersion.objects.values_list("content", flat=True)) <= LONGEST_FILE
    # Who keeps order has the newest of it, and none of it was refused; who only adds is refused from some day on.
    assert LINE.format(last) in (text_of(person, "/MEMORY.md") or "")
    codes = DreamEdit.objects.exclude(code="").values_list("path", "code").distinct()
    assert set(codes) == {("/USER.md", "file_too_large")}
    assert MemoryFile.objects.count() == 2
    # The nightly pass leaves the dreams of 90 days, and what was read stays read.
    decay.forget(tenant=person.tenant, now=now, trigger=DecayPass.Trigger.COMMAND)
    assert Dream.objects.count() == 90 // EVERY
    assert DreamedEpisode.objects.count() == read


def answer(model: Model) -> dict[str, Any]:
    """The model adds a line for each entry to each file; of MEMORY.md it drops the oldest when it is shown many."""
    history, shown = model.prompts[-1].split('<file path="MEMORY.md"')
    lines = re.findall("<line>(Day .*?)</line>", shown)
    dropped = [edit("MEMORY.md", f"{line}\n", "") for line in lines[:30]] if len(lines) > 70 else []
    added = "".join(LINE.format(day) for day in re.findall(r"Plan of day (\d+)<", history))
    return edits(*dropped, *(edit(path, "", added) for path in ("MEMORY.md", "USER.md")))
