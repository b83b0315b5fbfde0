"""Tenants: added and changed through the verb, with ranges, audited, never deleted."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from memories import conf
from memories.categories import CATEGORIES
from memories.conf.kinds import Number, NumberKind, shown
from memories.models import AuditEvent, Tenant
from tests import factories
from tests.admin.pages import HOSTILE, list_of, page_of, text_of
from tests.curation.marks import places_of

NUMERIC = [number for number in conf.NUMBERS.values() if number.kind in (NumberKind.WHOLE, NumberKind.REAL)]
SWITCHES = [number.name for number in conf.NUMBERS.values() if number.kind == NumberKind.SWITCH]


def form(**over: Any) -> dict[str, Any]:
    given = {
        "slug": "acme-prod",
        "name": "Acme",
        "time_zone": "UTC",
        "language": "en",
        "memory_of": "person",
        "context_log": "ids",
        "capture": "on",
        "serve": "on",
    }
    return {**given, "extraction_guidance": "", "signal_phrases": "", **over}


def hint_of(name: str, page: str) -> str:
    """What stands in grey in the empty field."""
    found = re.search(f'<input[^>]* name="{name}"[^>]* placeholder="([^"]*)"', page)
    assert found
    return found[1]


def test_a_tenant_is_added(admin: Client) -> None:
    response = admin.post(f"{list_of(Tenant)}add/", form(debounce_seconds="5"))
    assert response.status_code == 302
    tenant = Tenant.objects.get()
    assert (tenant.slug, tenant.name, tenant.numbers) == ("acme-prod", "Acme", {"debounce_seconds": 5})
    event = AuditEvent.objects.get(object_id=tenant.pk)
    assert (event.verb, event.actor_kind) == ("add", "operator")


def test_settings_are_changed_and_the_slug_stays(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    changed = form(slug="renamed", capture="", extraction_guidance="记住饮食习惯", time_zone="Asia/Shanghai")
    assert admin.post(page_of(tenant), changed).status_code == 302
    tenant.refresh_from_db()
    assert (tenant.slug, tenant.capture, tenant.serve, tenant.time_zone) == ("acme-prod", False, True, "Asia/Shanghai")
    assert (tenant.extraction_guidance, tenant.guidance_version) == ("记住饮食习惯", 2)
    assert AuditEvent.objects.get(object_id=tenant.pk).verb == "update"


def test_a_bad_value_is_refused(admin: Client) -> None:
    for fault in (
        {"time_zone": "Mars/Olympus"}, {"debounce_seconds": "200", "max_wait_seconds": "100"},
        {"compaction_wait_seconds": "4"}, {"merge_crowded": "maybe"}, {"half_life_of_goal": "soon"},
        {"half_life_of_goal": "0"}, {"half_life_of_goal": "3651"}, {"slug": "not a slug"}, {"slug": ""},
        {"extraction_guidance": "x" * 4001},
    ):  # fmt: skip
        response = admin.post(f"{list_of(Tenant)}add/", form(**fault))
        assert (response.status_code, "errornote" in text_of(response)) == (200, True), fault
    assert not Tenant.objects.exists()
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("end", ["lowest", "highest"])
def test_every_number_is_taken_to_both_ends(admin: Client, end: str) -> None:
    tenant = factories.tenant()
    ends = {number.name: getattr(number, end) for number in NUMERIC}
    assert admin.post(page_of(tenant), form(**{name: str(value) for name, value in ends.items()})).status_code == 302
    tenant.refresh_from_db()
    assert tenant.numbers == ends
    rules = conf.rules(tenant)
    # The lease alone is never shorter than a call.
    assert {name for name, value in ends.items() if getattr(rules, name) != value} <= {"lease_seconds"}
    assert admin.post(page_of(tenant), form()).status_code == 302
    tenant.refresh_from_db()
    assert tenant.numbers == {}


@pytest.mark.parametrize("wrong", ["below", "above", "nan", "１２"])
def test_no_number_is_taken_beyond_its_ends(admin: Client, wrong: str) -> None:
    tenant = factories.tenant(trash_days=7)
    page = text_of(admin.post(page_of(tenant), form(**{number.name: beyond(number, wrong) for number in NUMERIC})))
    for number in NUMERIC:
        assert re.search(f"Enter an? (whole )?number from {shown(number.lowest)} to {shown(number.highest)}", page)
    assert page.count(", or leave empty.") == len(NUMERIC)
    tenant.refresh_from_db()
    assert tenant.numbers == {"trash_days": 7}


def beyond(number: Number, wrong: str) -> str:
    step = 1 if number.kind == NumberKind.WHOLE else 0.01
    return str({"below": number.lowest - step, "above": number.highest + step}.get(wrong, wrong))


def test_a_switch_is_on_off_or_the_hubs(admin: Client) -> None:
    tenant = factories.tenant()
    assert len(SWITCHES) > 3
    for typed, numbers in (
        ("True", dict.fromkeys(SWITCHES, True)),
        ("False", dict.fromkeys(SWITCHES, False)),
        ("", {}),
    ):
        assert admin.post(page_of(tenant), form(**dict.fromkeys(SWITCHES, typed))).status_code == 302
        tenant.refresh_from_db()
        assert tenant.numbers == numbers


def test_capacity_can_be_without_bound(admin: Client) -> None:
    tenant = factories.tenant()
    assert admin.post(page_of(tenant), form(capacity="0")).status_code == 302
    tenant.refresh_from_db()
    assert conf.rules(tenant).capacity == 0


def test_half_lives_are_days_or_never(admin: Client) -> None:
    tenant = factories.tenant()
    typed = {"half_life_of_identity": "365", "half_life_of_goal": "Never", "half_life_of_skill": "30.5"}
    assert admin.post(page_of(tenant), form(**typed)).status_code == 302
    tenant.refresh_from_db()
    assert tenant.numbers == {"half_lives": {"identity": 365, "goal": None, "skill": 30.5}}
    page = text_of(admin.get(page_of(tenant)))
    assert 'value="never"' in page
    assert "3 changed" in page
    assert page.count('list="hub-never"') == len(CATEGORIES)


def test_the_form_names_ranges_and_the_hubs_own_numbers(admin: Client) -> None:
    page = text_of(admin.get(f"{list_of(Tenant)}add/"))
    for number in conf.NUMBERS.values():
        assert number.kind == NumberKind.HALF_LIVES or number.says in page
        assert number.kind != NumberKind.WHOLE or number.range in page
    assert hint_of("debounce_seconds", page) == "30"
    assert hint_of("half_life_of_identity", page) == "never"
    assert hint_of("half_life_of_goal", page) == "90"
    assert "Hub default: off" in page
    assert "hub-own" not in page


def test_a_category_shows_the_half_life_that_it_has(admin: Client) -> None:
    page = text_of(admin.get(page_of(factories.tenant(half_life_days=14))))
    assert hint_of("half_life_of_goal", page) == "14"


def test_what_was_typed_wrong_is_kept_in_an_open_section(admin: Client) -> None:
    tenant = factories.tenant()
    page = text_of(admin.post(page_of(tenant), form(trash_days="<b>soon")))
    assert 'value="&lt;b&gt;soon"' in page
    assert page.count(" open>") == 1
    assert "Enter a whole number from 1 to 365, or leave empty." in page


def test_numbers_that_cannot_be_used_are_told_and_dropped_by_saving(admin: Client) -> None:
    tenant = factories.tenant(numbers={"capacity": 3, HOSTILE: 1, "trash_days": 7})
    response = admin.get(page_of(tenant))
    assert "Saving removes them: <code>capacity</code>, " in text_of(response)
    assert "<script>alert" not in text_of(response)
    assert admin.post(page_of(tenant), form(trash_days="7")).status_code == 302
    tenant.refresh_from_db()
    assert tenant.numbers == {"trash_days": 7}
    assert "cannot be used" not in text_of(admin.get(page_of(tenant)))


def test_what_surprises_is_said_after_saving(admin: Client) -> None:
    tenant = factories.tenant()
    page = text_of(admin.post(page_of(tenant), form(served_confidence="0.9"), follow=True))
    assert "Facts with a confidence of 0.7 to 0.9 are kept, and told to nobody." in page
    assert "are kept, and told" not in text_of(admin.post(page_of(tenant), form(trash_days="7"), follow=True))


def test_who_may_only_look_changes_nothing(staff_who_may: Callable[..., Client]) -> None:
    tenant = factories.tenant(trash_days=7)
    reader = staff_who_may("view_tenant")
    page = text_of(reader.get(page_of(tenant)))
    assert page.count("<fieldset aria-label") == page.count(" disabled>") > 5
    assert reader.post(page_of(tenant), form(trash_days="9")).status_code == 403
    tenant.refresh_from_db()
    assert tenant.numbers == {"trash_days": 7}
    writer = text_of(staff_who_may("view_tenant", "change_tenant").get(page_of(tenant)))
    assert " disabled>" not in writer


def test_the_trail_tells_which_numbers_changed(admin: Client) -> None:
    tenant = factories.tenant()
    admin.post(page_of(tenant), form(trash_days="7", half_life_of_goal="14"))
    assert AuditEvent.objects.get(object_id=tenant.pk).counts == {"trash_days": 1, "half_lives": 1}
    assert "Days in the trash" in LogEntry.objects.get().change_message


def test_own_signs_are_kept_and_shown_as_they_were_typed(admin: Client) -> None:
    tenant = factories.tenant()
    typed = "correction: 打回重做\r\ngoal: our target is … this year"
    assert admin.post(page_of(tenant), form(signal_phrases=typed)).status_code == 302
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {"correction": ["打回重做"], "goal": ["our target is … this year"]}
    assert "correction: 打回重做\ngoal: our target is … this year</textarea>" in text_of(admin.get(page_of(tenant)))
    page = text_of(admin.post(page_of(tenant), form(signal_phrases=typed), follow=True))
    assert "A secret was removed" not in page
    assert admin.post(page_of(tenant), form()).status_code == 302
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {}


def test_signs_that_cannot_be_read_are_refused_and_kept_in_the_form(admin: Client) -> None:
    tenant = factories.tenant(signal_phrases={"goal": ["our target"]})
    page = text_of(admin.post(page_of(tenant), form(signal_phrases="mood: happy")))
    assert "Line 1: begin with one of" in page
    assert "mood: happy</textarea>" in page
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {"goal": ["our target"]}


def test_a_secret_in_the_settings_is_cut_out_and_the_operator_told(admin: Client) -> None:
    tenant = factories.tenant()
    said = {"extraction_guidance": "Our password is Tr0ub4dor-9x.", "name": "密码是Tr0ub4dor-9x"}
    page = text_of(admin.post(page_of(tenant), form(**said), follow=True))
    assert places_of("Tr0ub4dor-9x") == []
    assert "A secret was removed from your input." in page
    tenant.refresh_from_db()
    assert tenant.extraction_guidance == "Our password is [redacted:password]."
    harmless = text_of(admin.post(page_of(tenant), form(extraction_guidance="Remember what they eat."), follow=True))
    assert "A secret was removed" not in harmless
    assert places_of("what they eat") == ["memories_tenant.extraction_guidance"]


def test_the_files_of_dreams_are_lines_and_none_are_the_hubs(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    wrong = admin.post(page_of(tenant), form(dream_files="/notes/me.md\nUSER.md"))
    assert "“USER.md” is no path of a file" in text_of(wrong)
    admin.post(page_of(tenant), form(dream_files="/notes/me.md\n/notes/me.md\n/skills/"))
    tenant.refresh_from_db()
    assert tenant.dream_files == ["/notes/me.md", "/skills/"]
    admin.post(page_of(tenant), form(dream_files=""))
    tenant.refresh_from_db()
    assert tenant.dream_files == Tenant().dream_files


def test_djangos_log_holds_no_content(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    admin.post(page_of(tenant), form(extraction_guidance="Remember what Katherine eats"))
    entry = LogEntry.objects.get()
    assert entry.object_repr == "acme-prod"
    assert "Katherine" not in entry.change_message


def test_what_somebody_saved_meanwhile_is_not_overwritten(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod", name="Acme")
    seen = re.findall(r'name="expected" value="(\w+)"', text_of(admin.get(page_of(tenant))))[0]
    assert admin.post(page_of(tenant), form(name="Acme 2", expected=seen)).status_code == 302
    refused = admin.post(page_of(tenant), form(name="Acme 3", expected=seen))
    assert "Somebody else changed this in the meantime" in text_of(refused)
    tenant.refresh_from_db()
    assert tenant.name == "Acme 2"
    again = re.findall(r'name="expected" value="(\w+)"', text_of(refused))[0]
    assert admin.post(page_of(tenant), form(name="Acme 3", expected=again)).status_code == 302
    tenant.refresh_from_db()
    assert tenant.name == "Acme 3"


SECRET = "sk-proj-4f9aB2cD8eF1gH3iJ5kL7mN9oP0qR2sT4uV6wX8yZ1"


def test_the_first_text_of_memory_files_is_saved_without_secrets(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    admin.post(page_of(tenant), form(file_seed="# Notes\r\nWhat\u200b they like"), follow=True)
    tenant.refresh_from_db()
    assert tenant.file_seed == "# Notes\nWhat they like\n"
    assert "# Notes\nWhat they like" in text_of(admin.get(page_of(tenant)))
    saved = admin.post(page_of(tenant), form(file_seed=f"The key is {SECRET}"), follow=True)
    assert "A secret was removed" in text_of(saved)
    tenant.refresh_from_db()
    assert SECRET not in tenant.file_seed
    assert tenant.file_seed.startswith("The key is [redacted:")
    assert admin.post(page_of(tenant), form(file_seed="x" * 4_001)).status_code == 200
    assert admin.post(page_of(tenant), form()).status_code == 302
    tenant.refresh_from_db()
    assert tenant.file_seed == ""
