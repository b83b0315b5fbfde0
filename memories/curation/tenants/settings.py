"""A tenant's settings: what they can be, and saving them."""

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.categories import CATEGORIES
from memories.conf.kinds import NumberKind
from memories.curation.marks import mark_of
from memories.db import tenancy
from memories.exceptions import Conflict, Fault, InvalidInput, NotFound, PreconditionFailed
from memories.files import dream_files
from memories.forgetting import decay
from memories.invisible import strip_invisible
from memories.models import Tenant
from memories.models.people.tenants import PersonMay
from memories.store import assigning
from memories.store.namespaces import LONGEST_PATTERN, MOST_PATTERNS, is_pattern
from memories.text import signal_phrases
from memories.text.secrets.scrubbing import scrubbed_json, scrubbed_text
from memories.time_zones import is_zone

# What people decide about a tenant, by the names of its fields.
SETTINGS = (
    "name", "time_zone", "language", "capture", "serve", "extraction_guidance", "trust_assistant", "signal_phrases",
    "memory_of", "context_log", "file_seed", "dream_guide", "dream_model", "dream_files", "person_namespaces",
    "person_page", "person_may", "person_color", "numbers",
)  # fmt: skip
# Versions of tenants stay below: they are hashes, and nine digits fit an ETag.
_VERSIONS = 999_999_999
_LONGEST_NAME = 200
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
# Not settings: saving a form that was open for long must not turn them back.
_NO_SETTING = (
    "id", "slug", "created_at", "decayed_on", "offboarded_at", "before_offboarding", "webhook_events",
    "policy_version",
    "context_profiles",
)  # fmt: skip
_SETTINGS = [field.name for field in Tenant._meta.concrete_fields if field.name not in _NO_SETTING]


def save_tenant(*, tenant: Tenant, actor: Actor, now: datetime) -> Tenant:
    """Save a tenant that a form or a command made or changed, without secrets; new guidance gets a new version.

    Numbers that cannot be used are dropped. The audit event's counts name the numbers that changed. When one of them
    decides how memories fade, a task computes anew when each is forgotten.
    """
    tenant.extraction_guidance = scrubbed_text(tenant.extraction_guidance)
    # Agents edit by exact text, and lines end with one character.
    tenant.file_seed = scrubbed_text(tenant.file_seed.replace("\r\n", "\n"))
    tenant.dream_guide = scrubbed_text(tenant.dream_guide)
    tenant.dream_model = strip_invisible(tenant.dream_model).strip()
    tenant.dream_files = list(dict.fromkeys(map(strip_invisible, tenant.dream_files))) or _default_of("dream_files")
    tenant.signal_phrases = scrubbed_json(tenant.signal_phrases)
    tenant.person_namespaces = list(map(strip_invisible, tenant.person_namespaces))
    tenant.person_may = [one for one in PersonMay.values if one in tenant.person_may]
    tenant.person_color = tenant.person_color.lower()
    tenant.name = scrubbed_text(tenant.name, longest=_LONGEST_NAME)
    tenant.numbers = conf.own_numbers(tenant.numbers)
    # Also where the caller reaches all tenants, as to look whether there is one.
    with tenancy.of_tenant(tenant.pk), transaction.atomic():
        previous = Tenant.objects.select_for_update().filter(pk=tenant.pk).first()
        numbers_before = conf.own_numbers(previous.numbers if previous else {})
        changed = [name for name in conf.NUMBERS if numbers_before.get(name) != tenant.numbers.get(name)]
        if previous is None:
            tenant.created_at = now
            tenant.save()
        else:
            if previous.offboarded_at:
                # A form that was open before the off-boarding must not switch them on again.
                tenant.capture = tenant.serve = False
            has_new_guidance = previous.extraction_guidance != tenant.extraction_guidance
            tenant.guidance_version = previous.guidance_version + has_new_guidance
            tenant.save(update_fields=_SETTINGS)
        counts = dict.fromkeys(changed, 1)
        if previous and previous.person_namespaces != tenant.person_namespaces:
            counts["store_items"] = assigning.assign(tenant, now=now)
        if previous and conf.FADING.intersection(changed):
            # In this transaction, so that the task never runs before the numbers are there.
            decay.replan(tenant_id=tenant.pk)
        audit.record(
            actor=actor,
            verb="update" if previous else "add",
            target=tenant,
            object_id=tenant.pk,
            tenant=tenant,
            now=now,
            counts=counts,
        )
    return tenant


def is_color(text: str) -> bool:
    """Whether it is a colour as pages write it, or empty."""
    return not text or _COLOR.fullmatch(text) is not None


def version_of(tenant: Tenant) -> int:
    """A number that changes with each change of the settings; it tells nothing of their order."""
    return 1 + int(mark_of(tenant, (*SETTINGS, "offboarded_at")), 16) % _VERSIONS


def check_not_off_boarded(tenant: Tenant) -> None:
    """Errors: Conflict. A tenant that is off-boarded is restored before anything of it is changed."""
    if tenant.offboarded_at:
        raise Conflict(_("The tenant is off-boarded. Restore it before you change it."))


def put_tenant(
    *, slug: str, settings: Mapping[str, Any], expected_version: int | None, only_new: bool, actor: Actor, now: datetime
) -> tuple[Tenant, bool]:
    """Make the tenant if there is none with this slug, and give it these settings; what they leave out is the default.
    The second value: whether it was made.

    `only_new`: refuse one that exists. Errors: InvalidInput with the places; PreconditionFailed; Conflict (it is
    off-boarded).
    """
    whole = {**dict.fromkeys(SETTINGS), **settings}
    try:
        return _put(slug, whole, expected_version, only_new=only_new, actor=actor, now=now)
    except IntegrityError:
        # Somebody made it at this moment; the second time it is there.
        return _put(slug, whole, expected_version, only_new=only_new, actor=actor, now=now)


def change_tenant(
    *, tenant_id: uuid.UUID, changes: Mapping[str, Any], expected_version: int | None, actor: Actor, now: datetime
) -> Tenant:
    """Change the settings that are named; None is the default. Of the numbers those that are named change.

    Errors: InvalidInput with the places; NotFound; PreconditionFailed; Conflict (off-boarded).
    """
    with transaction.atomic():
        tenant = Tenant.objects.select_for_update().filter(pk=tenant_id).first()
        if tenant is None:
            raise NotFound
        return _changed(tenant, changes, expected_version, actor=actor, now=now)


def _put(
    slug: str, settings: Mapping[str, Any], expected_version: int | None, *, only_new: bool, actor: Actor, now: datetime
) -> tuple[Tenant, bool]:
    with transaction.atomic():
        tenant = Tenant.objects.select_for_update().filter(slug=slug).first()
        if tenant is None and expected_version is not None:
            raise PreconditionFailed
        if tenant is None:
            tenant = Tenant(slug=slug)
            _take(tenant, settings)
            return save_tenant(tenant=tenant, actor=actor, now=now), True
        if only_new:
            raise PreconditionFailed(_("There is a tenant with this slug."))
        if settings["numbers"] is not None:
            # What is left out is the hub's.
            settings = {
                **settings,
                "numbers": {**dict.fromkeys(conf.own_numbers(tenant.numbers)), **settings["numbers"]},
            }
        return _changed(tenant, settings, expected_version, actor=actor, now=now), False


def _changed(
    tenant: Tenant, settings: Mapping[str, Any], expected_version: int | None, *, actor: Actor, now: datetime
) -> Tenant:
    """Check and save what changes; without a change nothing is written."""
    before = version_of(tenant)
    if expected_version is not None and expected_version != before:
        raise PreconditionFailed
    check_not_off_boarded(tenant)
    _take(tenant, settings)
    return tenant if version_of(tenant) == before else save_tenant(tenant=tenant, actor=actor, now=now)


def _take(tenant: Tenant, settings: Mapping[str, Any]) -> None:
    """Set these settings, of their types, on a tenant that is not saved yet. Errors: InvalidInput with all places."""
    faults: list[Fault] = []
    for name, value in settings.items():
        if name == "numbers":
            tenant.numbers, wrong = _numbers_with(tenant.numbers, value)
            faults += wrong
        elif value is None:
            setattr(tenant, name, _default_of(name))
        else:
            setattr(tenant, name, value)
    faults += [Fault(name, "invalid", why) for name, check in _CHECKS.items() if (why := check(getattr(tenant, name)))]
    if not faults:
        tenant.signal_phrases = signal_phrases.checked(tenant.signal_phrases)
        faults += [Fault(f"numbers/{name}", "invalid", why) for name, why in conf.contradictions(conf.rules(tenant))]
    if faults:
        raise InvalidInput(faults=faults)


def _default_of(name: str) -> Any:
    field: Any = Tenant._meta.get_field(name)
    return field.get_default()


def _numbers_with(own: Any, changes: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[Fault]]:
    """A tenant's numbers after these changes, None being the hub's; and what is wrong with the changes."""
    numbers, faults = dict(conf.own_numbers(own)) if changes is not None else {}, []
    for name, value in (changes or {}).items():
        at, number = f"numbers/{name}", conf.NUMBERS.get(name)
        if value is None:
            numbers.pop(name, None)
        elif number is None:
            detail = _("There is no such number. There are: %(names)s.") % {"names": ", ".join(conf.NUMBERS)}
            faults.append(Fault(at, "unknown_field", detail))
        elif number.kind == NumberKind.HALF_LIVES:
            days = value if isinstance(value, Mapping) else {"": value}
            wrong = [one for one, day in days.items() if one not in CATEGORIES or not number.takes(day)]
            faults += [Fault(f"{at}/{one}".rstrip("/"), "invalid", _takes(number)) for one in wrong]
            numbers[name] = dict(days)
        elif not number.takes(value):
            faults.append(Fault(at, "invalid", _takes(number)))
        else:
            numbers[name] = value
    return numbers, faults


def _takes(number: conf.Number) -> str:
    return _("Give %(range)s, or null for the hub's own.") % {"range": number.range}


def _patterns_fault(patterns: list[str]) -> str:
    if len(patterns) > MOST_PATTERNS:
        return _("There are %(count)d lines. The limit is %(most)d.") % {"count": len(patterns), "most": MOST_PATTERNS}
    wrong = [pattern for pattern in patterns if len(pattern) > LONGEST_PATTERN or not is_pattern(pattern)]
    message = _("“%(pattern)s” is no pattern: labels with periods between them, of which one is {user_id}.")
    return message % {"pattern": wrong[0][:LONGEST_PATTERN]} if wrong else ""


def _dream_files_fault(lines: list[str]) -> str:
    wrong = dream_files.wrong_line(lines)
    message = _("“%(path)s” is no path of a file, like /memory/MEMORY.md, nor of a folder, like /skills/.")
    return message % {"path": wrong[:LONGEST_PATTERN]} if wrong is not None else ""


def _phrases_fault(phrases: Mapping[str, list[str]]) -> str:
    try:
        signal_phrases.checked(phrases)
    except ValueError as error:
        return str(error)
    return ""


_CHECKS: Mapping[str, Callable[[Any], str]] = {
    "time_zone": lambda name: (
        "" if is_zone(name) else _("This is not a time zone. Use a name such as Asia/Shanghai or UTC.")
    ),
    "dream_files": _dream_files_fault,
    "person_namespaces": _patterns_fault,
    "signal_phrases": _phrases_fault,
    "person_may": lambda acts: (
        ""
        if set(acts) <= set(PersonMay.values)
        else _("Use some of: %(names)s.") % {"names": ", ".join(PersonMay.values)}
    ),
    "person_color": lambda color: "" if is_color(color) else _("Give a colour such as #0f766e, or nothing."),
}
