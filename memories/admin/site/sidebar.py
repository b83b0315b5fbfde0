"""The sidebar: the pages that an operator may see, in the order of the work."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.admin.access.tenant_scope import permitted, tenants_of, within
from memories.admin.recall import playground, turn_search
from memories.admin.tenants import rollback
from memories.db.counts import counts
from memories.kinds import PLAIN
from memories.models import LanguageModel, Operator, PrivacyCase, ReviewItem

QUEUE = "admin:memories_reviewitem_queue"
BOARD = "admin:memories_privacycase_board"


class MenuEntry(NamedTuple):
    """A line of the menu: URL name of its page, permissions, and URL name of its link if that is another page.

    `others`: URL names of pages that belong to the line, and lie elsewhere.
    """

    title: str | Promise
    icon: str
    page: str
    permissions: Collection[str] = ()
    link: str = ""
    others: Collection[str] = ()


def _list(
    title: str | Promise, icon: str, model: str, *, app: str = "memories", link: str = "", others: Collection[str] = ()
) -> MenuEntry:
    return MenuEntry(title, icon, f"admin:{app}_{model}_changelist", (f"{app}.view_{model}",), link, others)


MENU: tuple[tuple[str | Promise, tuple[MenuEntry, ...]], ...] = (
    (
        "",
        (
            MenuEntry(_("Dashboard"), "dashboard", "admin:index"),
            _list(_("Review"), "rule", "reviewitem", link=QUEUE),
        ),
    ),
    (
        _("Memory"),
        (
            _list(_("End users"), "group", "enduser"),
            _list(_("Facts"), "lightbulb", "fact"),
            _list(_("Episodes"), "auto_stories", "episode"),
            _list(_("Sessions"), "chat", "session"),
            _list(
                _("Extraction runs"), "neurology", "extractionrun", others=["admin:parked", "admin:extraction_preview"]
            ),
            _list(_("Forgetting"), "auto_delete", "decaypass", others=["admin:forgetting", "admin:retention"]),
            MenuEntry(_("What was said"), "forum", "admin:said", turn_search.MAY),
            _list(_("Attachments"), "attach_file", "attachment"),
            _list(_("Memory files"), "description", "memoryfile"),
            *(_list(one.plain.listed, one.plain.icon, one.model.__name__.lower()) for one in PLAIN if one.plain),
            _list(_("Trajectories"), "route", "trajectory"),
            _list(_("Skills"), "school", "skill"),
            _list(_("Graph"), "hub", "graphtriple", others=["admin:memories_graphentity_changelist"]),
            _list(_("Dreams"), "bedtime", "dream"),
            _list(_("Groups of people"), "groups", "memorygroup"),
            _list(_("Imports"), "upload_file", "import"),
            _list(_("Store items"), "inventory_2", "storeitem"),
            _list(_("Log of contexts"), "history_edu", "loggedcontext"),
            MenuEntry(_("Why recalled?"), "manage_search", "admin:recalled", playground.MAY),
            MenuEntry(_("Roll back"), "settings_backup_restore", "admin:rollback", rollback.MAY),
        ),
    ),
    (
        _("Privacy"),
        (_list(_("Privacy cases"), "shield_person", "privacycase", link=BOARD),),
    ),
    (
        _("Access"),
        (
            _list(_("API keys"), "key", "apikey"),
            _list(_("Tenants"), "apps", "tenant"),
            _list(_("Agents"), "smart_toy", "agent"),
            _list(_("Webhooks"), "webhook", "webhookendpoint"),
            _list(_("Management keys"), "vpn_key", "managementkey"),
            _list(_("Operators"), "badge", "operator"),
            _list(_("Roles"), "groups", "group", app="auth"),
        ),
    ),
    (
        "",
        (
            _list(_("Audit trail"), "history", "auditevent", others=["admin:audit_chains"]),
            _list(_("Backups"), "save", "backup"),
        ),
    ),
)


# Only where there is something to choose from.
_TENANT_IN_VIEW = MenuEntry(_("Tenant in view"), "filter_alt", "admin:tenant_in_view")


class FrameCounts(NamedTuple):
    """What the frame of every page counts for the operator: open review items and cases, overdue cases, the tenants and
    those with a model endpoint of their own."""

    waiting: int = 0
    cases: int = 0
    overdue: int = 0
    tenants: int = 0
    own_endpoints: int = 0


def counts_of(request: HttpRequest) -> FrameCounts:
    """One query for each request; nothing for who has not signed in."""
    operator = request.user
    if not isinstance(operator, Operator):
        return FrameCounts()
    found: FrameCounts | None = getattr(request, "frame_counts", None)
    if found is None:
        now = timezone.now()
        items = _visible(operator, ReviewItem.objects.waiting())
        cases = _visible(operator, PrivacyCase.objects.unanswered(now))
        own = permitted(operator, LanguageModel.objects.exclude(base_url=""))
        overdue = cases.filter(due_at__lt=now)
        found = FrameCounts(*counts((items, cases, overdue, tenants_of(operator), own)))
        request.frame_counts = found  # type: ignore[attr-defined]
    return found


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The menu in Unfold's format. Unfold leaves out empty groups."""
    groups: list[dict[str, Any]] = []
    of_frame = counts_of(request)
    badges = {
        QUEUE: (of_frame.waiting, "danger"),
        BOARD: (of_frame.cases, "danger" if of_frame.overdue else "primary"),
    }
    for title, entries in MENU:
        items = [_item(request, entry, badges) for entry in entries if request.user.has_perms(entry.permissions)]
        if not groups and of_frame.tenants > 1:
            items.append(_item(request, _TENANT_IN_VIEW, badges))
        groups.append({"title": title, "separator": bool(groups), "items": items})
    return groups


def account_links(_request: HttpRequest) -> list[dict[str, Any]]:
    """The operator's own menu in Unfold's format."""
    links = [
        {"title": _("Preferences"), "link": reverse("admin:preferences")},
        {"title": _("Change password"), "link": reverse("admin:password_change")},
    ]
    if settings.MEMORYHUB_SECOND_FACTOR != "off":
        links.append({"title": _("Second factor"), "link": reverse("mfa_index")})
    return links


def _item(request: HttpRequest, entry: MenuEntry, badges: Mapping[str, tuple[int, str]]) -> dict[str, Any]:
    page = reverse(entry.page)
    # Unfold would look for the link anywhere in the path, and every path starts with the dashboard's.
    active = (
        request.path == page
        if entry.page == "admin:index"
        else request.path.startswith((page, *map(reverse, entry.others)))
    )
    item = {"title": entry.title, "icon": entry.icon, "link": reverse(entry.link or entry.page), "active": active}
    count, variant = badges.get(entry.link, (0, ""))
    return {**item, "badge": f"{count:,}", "badge_variant": variant} if count else item


def _visible(operator: Operator, rows: QuerySet[Any]) -> QuerySet[Any]:
    may_see = operator.has_perm(f"memories.view_{rows.model._meta.model_name}")
    return within(operator, rows) if may_see else rows.none()
