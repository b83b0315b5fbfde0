"""Roles: the groups that a migration makes, and what each of them may."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

READ = tuple(
    f"memories.view_{model}"
    for model in (
        "enduser",
        "session",
        "turn",
        "fact",
        "episode",
        "profilesection",
        "extractionrun",
        "reviewitem",
        "loggedcontext",
        "storeitem",
        "memoryfile",
        "diaryentry",
        "graphtriple",
        "dream",
        "memorygroup",
        "import",
        "trajectory",
        "skill",
        "attachment",
    )
)
EDIT = (
    "memories.change_reviewitem",
    "memories.add_enduser", "memories.change_enduser",
    "memories.add_fact", "memories.change_fact",
    "memories.change_episode",
    "memories.change_session", "memories.delete_session",
    "memories.change_extractionrun",
    "memories.change_storeitem", "memories.delete_storeitem",
    "memories.change_graphtriple",
    "memories.change_memoryfile",
    "memories.change_diaryentry",
    "memories.change_dream",
    "memories.change_attachment",
    "memories.change_memorygroup",
    "memories.change_skill",
    "memories.add_import", "memories.change_import",
    "memories.view_decaypass", "memories.change_decaypass",
    "memories.view_apikey", "memories.add_apikey", "memories.change_apikey",
    "memories.view_tenant", "memories.view_agent", "memories.export_tenant", "memories.view_webhookendpoint",
)  # fmt: skip
ADMINISTER = (
    "memories.add_tenant", "memories.change_tenant", "memories.change_agent", "memories.change_languagemodel",
    "memories.change_webhookendpoint", "memories.view_managementkey", "memories.change_managementkey",
    "memories.view_backup",
    "memories.view_operator", "memories.add_operator", "memories.change_operator",
    "auth.view_group", "auth.add_group", "auth.change_group",
    "memories.view_auditevent",
)  # fmt: skip

CASES = (
    "memories.view_privacycase",
    "memories.add_privacycase",
    "memories.change_privacycase",
    "memories.approve_privacycase",
)

ROLES: dict[str, tuple[str, ...]] = {
    # Decides what waits, and reads what it needs for that.
    "reviewer": (*READ, "memories.change_reviewitem", "memories.change_skill"),
    # Edits memories, makes and revokes keys of the own tenants.
    "operator": (*READ, *EDIT),
    # Handles privacy cases: reads all that there is of a person, edits none of it.
    "dpo": (
        *(
            *READ,
            *CASES,
            "memories.view_decaypass",
            "memories.view_tenant",
            "memories.view_agent",
            "memories.view_auditevent",
            "memories.view_webhookendpoint",
        ),
        "memories.export_tenant",
    ),
    # Reads who did what, and nobody's memories.
    "auditor": ("memories.view_auditevent", "memories.export_tenant"),
    "administrator": (*READ, *EDIT, *ADMINISTER),
}
# What each may do, in a line.
LINES: Mapping[str, Promise] = {
    "reviewer": _("Decides what waits for review. Reads people, memories, sessions and runs."),
    "operator": _(
        "Everything a reviewer does. Also edits, adds and forgets memories, deletes sessions, rolls back, retries, and "
        "creates keys."
    ),
    "dpo": _("Handles privacy cases. Reads all memories and the audit trail, and edits no memory."),
    "auditor": _("Reads the audit trail, which shows nobody's memories."),
    "administrator": _("Everything except privacy cases, and manages tenants, operators and roles."),
}
# For the catalogue; name_of() translates them.
_NAMES = (
    gettext_noop("reviewer"), gettext_noop("operator"), gettext_noop("dpo"), gettext_noop("auditor"),
    gettext_noop("administrator"),
)  # fmt: skip
# What the admin asks for anywhere: the permissions that a group of one's own can have.
GIVEN = tuple(dict.fromkeys(label for labels in ROLES.values() for label in labels))


def name_of(role: str) -> str:
    """The name as it is shown: the hub's own roles have translated names, others the one that they were given."""
    return gettext(role) if role in ROLES else role


def line_of(role: str) -> str:
    """What the role may do; empty for one that the hub did not make."""
    return str(LINES.get(role, ""))


def grant(apps: Any) -> None:
    """Make the groups that are missing and give each what the table says; nothing is taken away.

    For migrations: `apps` is their registry. Django makes its permissions after all of them, so those that a group
    needs are made here; later it finds them. A change of the table needs a migration that calls this again.
    """
    permissions = _permissions(apps, [label for label in GIVEN if _has_model(apps, label)])
    groups = apps.get_model("auth", "Group").objects
    for name, labels in ROLES.items():
        group, _ = groups.get_or_create(name=name)
        group.permissions.add(*(permissions[label] for label in labels if label in permissions))


def _has_model(apps: Any, label: str) -> bool:
    """Whether there is this model at the migration that calls; a later one brings it and calls again."""
    app, _, codename = label.partition(".")
    return app != "memories" or codename.partition("_")[2] in apps.all_models[app]


def _permissions(apps: Any, labels: Iterable[str]) -> dict[str, Any]:
    """The permissions named like memories.view_fact; those that are missing are made."""
    kinds = apps.get_model("contenttypes", "ContentType").objects
    model = apps.get_model("auth", "Permission")
    wanted = {}
    for label in labels:
        app, _, codename = label.partition(".")
        action, _, name = codename.partition("_")
        wanted[label] = (app, name, codename, f"Can {action} {apps.get_model(app, name)._meta.verbose_name}")
    kind_of = {
        key: kinds.get_or_create(app_label=key[0], model=key[1])[0] for key in {one[:2] for one in wanted.values()}
    }
    there = model.objects.filter(content_type__in=kind_of.values())
    existing = set(there.values_list("content_type_id", "codename"))
    made = [
        model(content_type=kind_of[app, name], codename=codename, name=shown)
        for app, name, codename, shown in wanted.values()
        if (kind_of[app, name].pk, codename) not in existing
    ]
    model.objects.bulk_create(made, ignore_conflicts=True)
    found = {(one.content_type_id, one.codename): one for one in there.all()}
    return {label: found[kind_of[app, name].pk, codename] for label, (app, name, codename, _) in wanted.items()}
