"""What an export discloses besides the data (GDPR Art. 15(1) a–h): purposes, recipients, retention, logic, rights.

The sentences are in the language in force. Staff of the application and operators of the hub appear as roles.
"""

from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from memories import conf
from memories.models import CaseType, EndUser, Fact, Session, WebhookEndpoint
from memories.privacy.exports.rows import Subject
from memories.privacy.stores.store import models_used
from memories.queue import own_models

# The default of the client library when no address is configured.
_HOST_OF_OPENAI = "api.openai.com"
Chapter = dict[str, Any]


def about(subject: Subject) -> dict[str, Any]:
    """The `about` of an export: its language, the application, chapters of sentences, and recipients of the data."""
    tenant = subject.person.tenant
    is_access = subject.profile == CaseType.ACCESS
    return {
        "language": get_language() or "en",
        "application": tenant.name or tenant.slug,
        "chapters": _access_chapters(subject) if is_access else _portability_chapters(),
        "recipients": _recipients(subject) if is_access else [],
    }


def _portability_chapters() -> list[Chapter]:
    return [
        _chapter(
            "contents",
            _("What is in this file"),
            _("What you provided: your messages word for word, what you asked to be remembered, and your record."),
            _("It is in a documented, open format (schema.json), so that another service can read it."),
            _(
                "Replies, conclusions, summaries and scores are not included. "
                "Request access (Art. 15 GDPR) to get them."
            ),
        )
    ]


def _access_chapters(subject: Subject) -> list[Chapter]:
    return [
        _chapter(
            "contents",
            _("What is in this file"),
            _("Everything stored about you, including what awaits review, was refused, or is in the trash."),
            _("Conclusions drawn by a program are marked as inferred. Scores are given as numbers."),
            _(
                "Of vectors, which are numbers computed from these texts, it says that they exist, and leaves out the "
                "numbers. Hashes and other people's data are left out."
            ),
            _("Members of staff are named by their role."),
        ),
        _chapter(
            "purposes",
            _("Purposes"),
            _(
                "So that the assistants of this application remember "
                "what you told them and can use it in their answers."
            ),
            _("So that the staff of the application can correct what was remembered wrongly."),
        ),
        _chapter(
            "sources",
            _("Sources"),
            _("Your conversations with the assistants, as the application sent them."),
            _("What the application or its staff entered about you."),
            _("Each statement names the turns that it rests on, and who said them."),
        ),
        _chapter("retention", _("How long it is kept"), *_retention(conf.rules(subject.person.tenant))),
        _chapter(
            "logic",
            _("Automated decisions"),
            _(
                "A language model, or simple rules where there is none, reads new turns "
                "and proposes statements about you."
            ),
            _(
                "The program keeps those that are certain and important enough. "
                "It discards the others or asks a member of staff."
            ),
            _("A statement fades depending on its importance and on the time since it was last confirmed or used."),
            _("The assistant receives the statements that match your question. Nothing else is decided this way."),
        ),
        _chapter(
            "rights",
            _("Your rights"),
            _("You can ask the application to correct or erase your data, to restrict its use or to stop using it."),
            _("You can get the data that you provided in a format for another service (portability)."),
            _(
                "You can complain to the data protection authority "
                "where you live or work, or where the problem occurred."
            ),
        ),
    ]


def _chapter(name: str, title: str, *says: str) -> Chapter:
    return {"name": name, "title": title, "says": list(says)}


def _retention(rules: conf.Rules) -> list[str]:
    kept = (
        (rules.keep_turns_days, _("Turns are deleted after %(days)s days.")),
        (rules.keep_episodes_days, _("Episodes are deleted after %(days)s days.")),
        (rules.keep_runs_days, _("Records of the model's runs are deleted after %(days)s days.")),
        (rules.keep_contexts_days, _("The log of what agents were given is deleted after %(days)s days.")),
    )
    if days := rules.keep_audit_days:
        audit = _(
            "The audit trail, which contains ids and actions but nothing that you said, is deleted after %(days)s days."
        )
        audit %= {"days": days}
    else:
        audit = _("The audit trail, which contains ids and actions but nothing that you said, is kept.")
    return [
        *(says % {"days": days} for days, says in kept if days),
        _("Statements and episodes fade when nothing renews them. Where there is a date for that, it is given."),
        _("Forgotten memories stay in the trash for %(days)s days and are then deleted.") % {"days": rules.trash_days},
        _("Everything else is kept until the application deletes it or you ask for its deletion."),
        _("Copies of API responses are kept for a day. This export is deleted after it is downloaded."),
        audit,
    ]


def _recipients(subject: Subject) -> list[dict[str, str]]:
    """The application, staff, agents, models that received texts, and the endpoints that are configured now."""
    slug = subject.person.tenant.slug
    agent_says = _("An assistant that talked with you and receives what is remembered.")
    model_says = _("A language model that received what you said.")
    found = [
        ("application", slug, _("Sends the conversations and requests contexts.")),
        ("staff", "", _("Operators of the hub who have access to this application.")),
        *(("agent", agent, agent_says) for agent in _agents(subject)),
        *(("model_asked", name, model_says) for name in models_used(subject.person)),
    ]
    llm = own_models.config_of(subject.person.tenant_id)
    embeddings, reranker = conf.embeddings(), conf.reranking()
    if llm.mode == "openai":
        found.append(("model", _host(llm.base_url), _("Reads the conversations and proposes what to remember.")))
    if embeddings.mode == conf.EMBEDDINGS_OPENAI:
        says = _("Converts texts into numbers for searching.")
        found.append(("embeddings", _host(embeddings.base_url), says))
    if reranker.url:
        found.append(("reranker", _host(reranker.url), _("Ranks search results.")))
    says_ids, says_content = (
        _("A system that is told, by numbers of the hub, that something was remembered or forgotten."),
        _("A system that is told what is remembered."),
    )
    endpoints = WebhookEndpoint.objects.enabled().filter(tenant=subject.person.tenant_id).order_by("created_at")
    found += [("webhook", _host(row.url), says_content if row.content else says_ids) for row in endpoints]
    return [{"kind": kind, "name": name, "says": says} for kind, name, says in found]


def _agents(subject: Subject) -> list[str]:
    """Agents that had a session with the person or own a fact about them."""
    behind = EndUser.objects.with_aliases(subject.person)
    sessions = Session.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    facts = Fact.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    return sorted({*sessions.distinct(), *facts.distinct()} - {""})


def _host(url: str) -> str:
    """The host alone: an address may hold a password."""
    return urlsplit(url).hostname or _HOST_OF_OPENAI
