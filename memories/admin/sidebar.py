"""The sidebar: what an operator may see, in the order of the work."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin import recalled
from memories.admin.reach import within
from memories.admin.rollback import MAY
from memories.models import ReviewItem

# Group → (title, icon, model); an empty model is the dashboard.
MENU: tuple[tuple[str | Promise, tuple[tuple[str | Promise, str, str], ...]], ...] = (
    ("", ((_("Dashboard"), "dashboard", ""), (_("Review"), "rule", "reviewitem"))),
    (
        _("Memory"),
        (
            (_("End users"), "group", "enduser"),
            (_("Facts"), "lightbulb", "fact"),
            (_("Episodes"), "auto_stories", "episode"),
            (_("Sessions"), "forum", "session"),
            (_("Extraction runs"), "neurology", "extractionrun"),
            (_("Forgetting"), "auto_delete", "decaypass"),
        ),
    ),
    (
        _("Access"),
        (
            (_("API keys"), "key", "apikey"),
            (_("Tenants"), "apps", "tenant"),
            (_("Operators"), "badge", "operator"),
            (_("Groups"), "groups", "group"),
        ),
    ),
    ("", ((_("Audit trail"), "history", "auditevent"),)),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Unfold's form of the menu; groups with nothing to see are left out by it."""
    groups: list[dict[str, Any]] = []
    for title, entries in MENU:
        items = [_item(request, *entry) for entry in entries]
        if title == _("Memory") and request.user.has_perms(recalled.MAY):
            link = reverse("admin:recalled")
            active = request.path == link
            items.append({"title": _("Why recalled?"), "icon": "manage_search", "link": link, "active": active})
        if title == _("Memory") and request.user.has_perms(MAY):
            link = reverse("admin:rollback")
            active = request.path.startswith(link)
            items.append({"title": _("Roll back"), "icon": "settings_backup_restore", "link": link, "active": active})
        groups.append({"title": title, "separator": bool(groups), "items": [item for item in items if item]})
    return groups


def of_the_operator(_request: HttpRequest) -> list[dict[str, Any]]:
    """What the menu of whoever is signed in leads to, in Unfold's form."""
    links = [
        {"title": _("Preferences"), "link": reverse("admin:preferences")},
        {"title": _("Change password"), "link": reverse("admin:password_change")},
    ]
    if settings.MEMORYHUB_SECOND_FACTOR != "off":
        links.append({"title": _("Second factor"), "link": reverse("mfa_index")})
    return links


def _item(request: HttpRequest, title: str | Promise, icon: str, model: str) -> dict[str, Any] | None:
    app = "auth" if model == "group" else "memories"
    if model and not request.user.has_perm(f"{app}.view_{model}"):
        return None
    page = reverse(f"admin:{app}_{model}_changelist") if model else reverse("admin:index")
    # Unfold's own match finds the link anywhere in the path, and the dashboard's is the start of them all.
    active = request.path.startswith(page) if model else request.path == page
    link = reverse("admin:memories_reviewitem_queue") if model == "reviewitem" else page
    item = {"title": title, "icon": icon, "link": link, "active": active}
    waiting = within(request.user, ReviewItem.objects.waiting()).count() if model == "reviewitem" else 0
    return {**item, "badge": f"{waiting:,}", "badge_variant": "danger"} if waiting else item
