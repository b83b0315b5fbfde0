"""Help: the jobs of an operator, each with how it is done and the pages where, as far as the operator may open them.

The palette finds a job by a question in plain words: by its title, its text, and other words for it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.functional import Promise
from django.utils.translation import gettext, override
from django.utils.translation import gettext_lazy as _

from memories.admin.recall import playground, turn_search
from memories.admin.runs.previewing import MAY as MAY_PREVIEW
from memories.admin.site.page import render_page
from memories.admin.tenants import rollback

# So many jobs the palette shows, and so much of what is asked they have at least: half of it in their own words.
MOST, _LEAST = 3, 1.0
_WORD, _CHINESE = re.compile(r"[a-z0-9]{3,}"), re.compile(r"[\u4e00-\u9fff]{2,}")
# What questions begin with.
_ASKING = frozenset(
    {"how", "can", "could", "may", "might", "should", "would", "does", "did", "what", "which", "who", "whose", "where"}
    | {"when", "why", "the", "and", "for", "with", "from", "into", "that", "this", "there", "have", "has", "want"}
    | {"need", "please", "about", "one", "some", "any", "all", "get", "let", "make"}
    | {"怎么", "如何", "怎样", "什么", "为什", "哪里", "可以", "能不", "不能", "我要", "我想", "一个", "某人", "请问"}
)


class HelpEntry(NamedTuple):
    """A page: its title, URL name, and what it takes to open it."""

    title: str | Promise
    page: str
    permissions: Sequence[str]


class Job(NamedTuple):
    """`name`: its place on the page. `words`: other words for it, by which it is found."""

    name: str
    title: str | Promise
    how: str | Promise
    words: str | Promise
    places: Sequence[HelpEntry]


def _list(title: str | Promise, model: str, page: str = "changelist", *, app: str = "memories") -> HelpEntry:
    return HelpEntry(title, f"admin:{app}_{model}_{page}", (f"{app}.view_{model}",))


JOBS: Sequence[Job] = (
    Job(
        "review",
        _("Decide what waits for review"),
        _(
            "Each item shows who said it and what is already known. The key ? lists all keys. Every decision has an "
            "Undo."
        ),
        _("approve reject accept suggestion pending queue decide"),
        (_list(_("Review"), "reviewitem", "queue"),),
    ),
    Job(
        "why",
        _("Find out why the agent said that"),
        _(
            "Open the end user: the timeline has what was said and what came of it. “Why recalled?” ranks the memories "
            "for a question, and the log has the contexts that were served."
        ),
        _("wrong answer reason explain recalled context"),
        (
            _list(_("End users"), "enduser"),
            HelpEntry(_("Why recalled?"), "admin:recalled", playground.MAY),
            _list(_("Log of contexts"), "loggedcontext"),
        ),
    ),
    Job(
        "correct",
        _("Correct a memory, or forget it"),
        _(
            "Open the fact and choose Correct or Forget. Then the page lists what else still says the old claim, and "
            "the turns that say it, which you can redact. The message after it has an Undo."
        ),
        _("change edit fix wrong memory fact forget remove delete redact"),
        (_list(_("Facts"), "fact"), _list(_("Episodes"), "episode")),
    ),
    Job(
        "said",
        _("Find who said something"),
        _(
            "Search the turns of a tenant by words and by meaning. Each search is in the audit trail, "
            "without its words."
        ),
        _("quote search turn message conversation talk"),
        (HelpEntry(_("What was said"), "admin:said", turn_search.MAY),),
    ),
    Job(
        "requests",
        _("Answer a request for access, correction or erasure"),
        _("Open a case. Its page leads through the steps, and the board shows the days that are left."),
        _("privacy GDPR data subject access export copy rectification restrict deadline DPO"),
        (_list(_("Privacy cases"), "privacycase", "board"),),
    ),
    Job(
        "erase",
        _("Erase a person for good"),
        _(
            "Open a case of erasure, check the identity and count the data. Another operator approves it, and not one "
            "whose account or password the first gave within 24 hours. The receipt says what was erased, and what "
            "such a case does not reach."
        ),
        _("erasure delete remove wipe somebody someone person user forgotten GDPR article 17 approve second"),
        (_list(_("Privacy cases"), "privacycase", "board"),),
    ),
    Job(
        "roll-back",
        _("Undo what an agent, a key or a day produced"),
        _("Roll back shows first what would change, and has one Undo. An agent's page fills it in for that agent."),
        _("revert undo restore mistake broken agent"),
        (HelpEntry(_("Roll back"), "admin:rollback", rollback.MAY), _list(_("Agents"), "agent")),
    ),
    Job(
        "forgetting",
        _("See what will be forgotten, and keep it"),
        _("Forgetting forecasts the next 30 days. Pin a fact to keep it; what is in the trash can be restored."),
        _("decay fade expire trash restore pin keep"),
        (HelpEntry(_("Forgetting"), "admin:forgetting", ("memories.view_decaypass",)),),
    ),
    Job(
        "days",
        _("Keep data for some days only"),
        _("A tenant's page sets after how many days what people said, episodes and other rows are deleted."),
        _("retention days delete old automatically keep policy storage limit"),
        (HelpEntry(_("Retention"), "admin:retention", ("memories.view_decaypass",)),),
    ),
    Job(
        "then",
        _("Find out what an agent knew at a moment"),
        _(
            "On the page of an end user, “What an agent sees” takes a day and time. It shows what held then, and the "
            "context that was served, if it was logged."
        ),
        _("yesterday past history then when as of know known date"),
        (_list(_("End users"), "enduser"), _list(_("Log of contexts"), "loggedcontext")),
    ),
    Job(
        "model",
        _("Choose a model, and try it"),
        _(
            "On the tenant's page, “Change model, endpoint and caps…” has the tenant's own. Test tries what is entered "
            "before you save it."
        ),
        _("LLM endpoint address provider OpenAI Ollama local key price cost cap budget test"),
        (_list(_("Tenants"), "tenant"),),
    ),
    Job(
        "try",
        _("Try a prompt before it counts"),
        _(
            "“Try extraction” shows the exact prompt of a session or of a pasted text, and what another model or "
            "guidance would make of it. Nothing is stored."
        ),
        _("prompt preview dry run test guidance extraction sandbox what would be learned"),
        (HelpEntry(_("Try extraction"), "admin:extraction_preview", MAY_PREVIEW),),
    ),
    Job(
        "retry",
        _("Retry what failed"),
        _(
            "Remove the cause, then retry all work that failed for it. After an outage of the model there is nothing "
            "to do."
        ),
        _("parked failed stuck error outage again"),
        (HelpEntry(_("Parked work"), "admin:parked", ("memories.view_session",)),),
    ),
    Job(
        "keys",
        _("Give an application access"),
        _("Add a tenant, then a key for it with only the scopes that it needs. The key is shown once."),
        _("API key token scope integrate connect developer tenant"),
        (_list(_("Tenants"), "tenant"), _list(_("API keys"), "apikey")),
    ),
    Job(
        "events",
        _("Tell another system what happens"),
        _("A webhook sends the events of a tenant to an address, signed. Its page has the deliveries."),
        _("webhook event notify callback integration CRM push"),
        (_list(_("Webhooks"), "webhookendpoint"),),
    ),
    Job(
        "colleagues",
        _("Give a colleague access"),
        _(
            "Add an operator with the roles of the work. They get a one-time link and choose a password. Turn “Can "
            "sign in” off when somebody leaves."
        ),
        _("operator user account invite role permission password login"),
        (_list(_("Operators"), "operator"), _list(_("Roles"), "group", app="auth")),
    ),
    Job(
        "trail",
        _("See who changed what"),
        _("The audit trail has every change by people, keys and jobs. It is sealed, and its page checks the seals."),
        _("audit log history trace who when seal"),
        (_list(_("Audit trail"), "auditevent"),),
    ),
)


def urls() -> list[URLPattern]:
    return [path("help/", admin.site.admin_view(jobs), name="help")]


def jobs(request: HttpRequest) -> HttpResponse:
    shown = [(job, places) for job in JOBS if (places := _places(request, job))]
    return render_page(request, "memories/help.html", title=gettext("Help"), jobs=shown)


def about(request: HttpRequest, words: str) -> list[Job]:
    """The jobs that the words are about, in any language of the pages, best first: at most MOST, of those that the
    operator may do."""
    jobs = [job for job in JOBS if _places(request, job)]
    asked = _terms(words) - _ASKING
    known = set[str]().union(*(near | far for job in jobs for near, far in _texts(job)))
    # Chinese has no spaces: most pairs of its characters are no words.
    asked = {term for term in asked if term.isascii() or term in known}
    if not (asked and jobs):
        return []
    ranked = [(max(_score(asked, near, far) for near, far in _texts(job)), job) for job in jobs]
    best = max(score for score, _job in ranked)
    # A word of a long text alone says little; beside a good one it says nothing.
    fitting = [one for one in ranked if one[0] >= max(_LEAST, best / 2)]
    return [job for _score_of_job, job in sorted(fitting, key=lambda one: -one[0])[:MOST]]


def _places(request: HttpRequest, job: Job) -> list[HelpEntry]:
    """Those of its pages that the operator may open."""
    return [place for place in job.places if request.user.has_perms(place.permissions)]


def _texts(job: Job) -> list[tuple[set[str], set[str]]]:
    """In each language of the pages the terms of its title and other words, and those of its text."""
    found = []
    for language, _name in settings.LANGUAGES:
        with override(language):
            found.append((_terms(f"{job.title} {job.words}"), _terms(str(job.how))))
    return found


def _score(asked: set[str], near: set[str], far: set[str]) -> float:
    """How much of what is asked is in the title and the other words (2 each), or in the text (1): the mean."""
    return sum(2 if _any_fits(term, near) else 1 if _any_fits(term, far) else 0 for term in asked) / len(asked)


def _terms(text: str) -> set[str]:
    """Words of letters, and pairs of Chinese characters."""
    folded = text.casefold()
    pairs = {run[place : place + 2] for run in _CHINESE.findall(folded) for place in range(len(run) - 1)}
    return set(_WORD.findall(folded)) | pairs


def _any_fits(term: str, words: set[str]) -> bool:
    return any(_fits(term, word) for word in words)


def _fits(term: str, word: str) -> bool:
    """Whether these are forms of one word: "erase" and "erasure", "keys" and "key"."""
    if min(len(term), len(word)) < 4 or not term.isascii():
        return term in (word, f"{word}s") or word == f"{term}s"
    shared = next((place for place, (a, b) in enumerate(zip(term, word, strict=False)) if a != b), None)
    return shared is None or shared >= max(4, min(len(term), len(word)) - 1)
