"""Help: the jobs of an operator, each with how it is done and the pages where, as far as the operator may open them."""

from collections.abc import Sequence
from typing import NamedTuple

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories.admin.recall import playground, turn_search
from memories.admin.site.page import render_page
from memories.admin.tenants import rollback


class HelpEntry(NamedTuple):
    """A page: its title, URL name, and what it takes to open it."""

    title: str | Promise
    page: str
    permissions: Sequence[str]


class Job(NamedTuple):
    title: str | Promise
    how: str | Promise
    places: Sequence[HelpEntry]


def _list(title: str | Promise, model: str, page: str = "changelist", *, app: str = "memories") -> HelpEntry:
    return HelpEntry(title, f"admin:{app}_{model}_{page}", (f"{app}.view_{model}",))


JOBS: Sequence[Job] = (
    Job(
        _("Decide what waits for review"),
        _(
            "Each item shows who said it and what is already known. The key ? lists all keys. Every decision has an "
            "Undo."
        ),
        (_list(_("Review"), "reviewitem", "queue"),),
    ),
    Job(
        _("Find out why the agent said that"),
        _(
            "Open the end user: the timeline has what was said and what came of it. “Why recalled?” ranks the memories "
            "for a question, and the log has the contexts that were served."
        ),
        (
            _list(_("End users"), "enduser"),
            HelpEntry(_("Why recalled?"), "admin:recalled", playground.MAY),
            _list(_("Log of contexts"), "loggedcontext"),
        ),
    ),
    Job(
        _("Correct a memory, or forget it"),
        _(
            "Open the fact and choose Correct or Forget. Then the page lists what else still says the old claim, and "
            "the turns that say it, which you can redact. The message after it has an Undo."
        ),
        (_list(_("Facts"), "fact"), _list(_("Episodes"), "episode")),
    ),
    Job(
        _("Find who said something"),
        _(
            "Search the turns of a tenant by words and by meaning. Each search is in the audit trail, "
            "without its words."
        ),
        (HelpEntry(_("What was said"), "admin:said", turn_search.MAY),),
    ),
    Job(
        _("Answer a request for access, correction or erasure"),
        _("Open a case. Its page leads through the steps, and the board shows the days that are left."),
        (_list(_("Privacy cases"), "privacycase", "board"),),
    ),
    Job(
        _("Undo what an agent, a key or a day produced"),
        _("Roll back shows first what would change, and has one Undo. An agent's page fills it in for that agent."),
        (HelpEntry(_("Roll back"), "admin:rollback", rollback.MAY), _list(_("Agents"), "agent")),
    ),
    Job(
        _("See what will be forgotten, and keep it"),
        _("Forgetting forecasts the next 30 days. Pin a fact to keep it; what is in the trash can be restored."),
        (HelpEntry(_("Forgetting"), "admin:forgetting", ("memories.view_decaypass",)),),
    ),
    Job(
        _("Retry what failed"),
        _(
            "Remove the cause, then retry all work that failed for it. After an outage of the model there is nothing "
            "to do."
        ),
        (HelpEntry(_("Parked work"), "admin:parked", ("memories.view_session",)),),
    ),
    Job(
        _("Give an application access"),
        _("Add a tenant, then a key for it with only the scopes that it needs. The key is shown once."),
        (_list(_("Tenants"), "tenant"), _list(_("API keys"), "apikey")),
    ),
    Job(
        _("Give a colleague access"),
        _(
            "Add an operator with the roles of the work. They get a one-time link and choose a password. Turn “Can "
            "sign in” off when somebody leaves."
        ),
        (_list(_("Operators"), "operator"), _list(_("Roles"), "group", app="auth")),
    ),
    Job(
        _("See who changed what"),
        _("The audit trail has every change by people, keys and jobs. It is sealed, and its page checks the seals."),
        (_list(_("Audit trail"), "auditevent"),),
    ),
)


def urls() -> list[URLPattern]:
    return [path("help/", admin.site.admin_view(jobs), name="help")]


def jobs(request: HttpRequest) -> HttpResponse:
    shown = []
    for job in JOBS:
        places = [place for place in job.places if request.user.has_perms(place.permissions)]
        if places:
            shown.append((job, places))
    return render_page(request, "memories/help.html", title=gettext("Help"), jobs=shown)
