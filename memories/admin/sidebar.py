"""The sidebar: what an operator may see, in the order of the work."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Count, IntegerField, QuerySet, Subquery, Value
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin import recalled, rollback
from memories.admin.reach import within
from memories.models import Operator, PrivacyCase, ReviewItem

QUEUE = "admin:memories_reviewitem_queue"
BOARD = "admin:memories_privacycase_board"


class Entry(NamedTuple):
    """A line of the menu: the address of its page, what an operator needs for it, and what it leads to if not there."""

    title: str | Promise
    icon: str
    page: str
    needs: Collection[str] = ()
    leads_to: str = ""


def _list(title: str | Promise, icon: str, model: str, *, app: str = "memories", leads_to: str = "") -> Entry:
    return Entry(title, icon, f"admin:{app}_{model}_changelist", (f"{app}.view_{model}",), leads_to)


MENU: tuple[tuple[str | Promise, tuple[Entry, ...]], ...] = (
    (
        "",
        (
            Entry(_("Dashboard"), "dashboard", "admin:index"),
            _list(_("Review"), "rule", "reviewitem", leads_to=QUEUE),
        ),
    ),
    (
        _("Memory"),
        (
            _list(_("End users"), "group", "enduser"),
            _list(_("Facts"), "lightbulb", "fact"),
            _list(_("Episodes"), "auto_stories", "episode"),
            _list(_("Sessions"), "forum", "session"),
            _list(_("Extraction runs"), "neurology", "extractionrun"),
            _list(_("Forgetting"), "auto_delete", "decaypass"),
            Entry(_("Why recalled?"), "manage_search", "admin:recalled", recalled.MAY),
            Entry(_("Roll back"), "settings_backup_restore", "admin:rollback", rollback.MAY),
        ),
    ),
    (
        _("Privacy"),
        (_list(_("Privacy cases"), "shield_person", "privacycase", leads_to=BOARD),),
    ),
    (
        _("Access"),
        (
            _list(_("API keys"), "key", "apikey"),
            _list(_("Tenants"), "apps", "tenant"),
            _list(_("Operators"), "badge", "operator"),
            _list(_("Groups"), "groups", "group", app="auth"),
        ),
    ),
    ("", (_list(_("Audit trail"), "history", "auditevent"),)),
)


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Unfold's form of the menu; groups with nothing to see are left out by it."""
    groups: list[dict[str, Any]] = []
    badges = _badges(request)
    for title, entries in MENU:
        items = [_item(request, entry, badges) for entry in entries if request.user.has_perms(entry.needs)]
        groups.append({"title": title, "separator": bool(groups), "items": items})
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


def _item(request: HttpRequest, entry: Entry, badges: Mapping[str, tuple[int, str]]) -> dict[str, Any]:
    page = reverse(entry.page)
    # Unfold's own match finds the link anywhere in the path, and the dashboard's is the start of them all.
    active = request.path == page if entry.page == "admin:index" else request.path.startswith(page)
    item = {"title": entry.title, "icon": entry.icon, "link": reverse(entry.leads_to or entry.page), "active": active}
    count, variant = badges.get(entry.leads_to, (0, ""))
    return {**item, "badge": f"{count:,}", "badge_variant": variant} if count else item


def _badges(request: HttpRequest) -> dict[str, tuple[int, str]]:
    """How much waits behind an entry, and its colour: one query for all of the menu."""
    operator = request.user
    if not isinstance(operator, Operator):
        return {}
    items, cases = _seen(operator, ReviewItem.objects.waiting()), _seen(operator, PrivacyCase.objects.open())
    asked = map(_count, (items, cases, cases.filter(due_at__lt=timezone.now())))
    found = Operator.objects.filter(pk=operator.pk).values_list(*asked).get()
    # No rows at all are no number to Django.
    waiting, opened, overdue = (int(count or 0) for count in found)
    return {QUEUE: (waiting, "danger"), BOARD: (opened, "danger" if overdue else "primary")}


def _seen(operator: Operator, rows: QuerySet[Any]) -> QuerySet[Any]:
    may_see = operator.has_perm(f"memories.view_{rows.model._meta.model_name}")
    return within(operator, rows) if may_see else rows.none()


def _count(rows: QuerySet[Any]) -> Subquery:
    """How many rows there are, as a value of another query."""
    numbers = rows.order_by().annotate(one=Value(1)).values("one").annotate(number=Count("pk")).values("number")
    return Subquery(numbers, output_field=IntegerField())
