"""What an export discloses besides the data (GDPR Art. 15(1) a–h): purposes, recipients, retention, logic, rights.

The sentences are in the language in force. Staff of the application and operators of the hub appear as roles.
"""

from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from memories import conf
from memories.models import CaseType, EndUser, Fact, Session
from memories.privacy.exports.rows import Subject
from memories.privacy.stores.store import models_used

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
            _("What you provided: what you said, word for word, what you stated to be remembered, and your record."),
            _("It is in a documented, open format (schema.json), so that another service can read it."),
            _("Not in it: replies, conclusions, summaries and scores. Ask for access (Art. 15 GDPR) to get those."),
        )
    ]


def _access_chapters(subject: Subject) -> list[Chapter]:
    return [
        _chapter(
            "contents",
            _("What is in this file"),
            _("Everything that is kept about you here, also what waits, was refused, or is in the trash."),
            _("Conclusions that a program drew are marked as inferred. Scores are told as the numbers that they are."),
            _(
                "Left out are hashes and vectors, which are numbers computed from these texts, "
                "and what is other people's."
            ),
            _("People who work here are named by their role."),
        ),
        _chapter(
            "purposes",
            _("What it is kept for"),
            _("So that assistants of this application remember what you told them, and can answer in view of it."),
            _("So that people who look after the application can correct what was remembered wrongly."),
        ),
        _chapter(
            "sources",
            _("Where it comes from"),
            _("The conversations that you had with the assistants, as the application passed them on."),
            _("What the application or the people who look after it entered about you."),
            _("Each statement names the turns that it rests on, and who said them."),
        ),
        _chapter("retention", _("How long it is kept"), *_retention(conf.rules(subject.person.tenant))),
        _chapter(
            "logic",
            _("What is decided by programs"),
            _(
                "A language model, or simple rules where there is none, reads new turns "
                "and proposes statements about you."
            ),
            _("Code keeps those that are sure and important enough, and holds the others back or asks a person."),
            _("Importance, and the time since a statement was last confirmed or used, decide when it fades."),
            _("The assistant is shown the statements that fit what you ask. Nothing else is decided by it."),
        ),
        _chapter(
            "rights",
            _("Your rights"),
            _("You can ask the application to correct what is wrong, to erase it, to restrict its use or to stop it."),
            _("You can have what you provided in a format for another service (portability)."),
            _("You can complain to the data protection authority where you live or work, or where it happened."),
        ),
    ]


def _chapter(name: str, title: str, *says: str) -> Chapter:
    return {"name": name, "title": title, "says": list(says)}


def _retention(rules: conf.Rules) -> list[str]:
    kept = (
        (rules.keep_turns_days, _("Turns are deleted after %(days)s days.")),
        (rules.keep_episodes_days, _("Episodes are deleted after %(days)s days.")),
        (rules.keep_runs_days, _("Records of the model's runs are deleted after %(days)s days.")),
    )
    if days := rules.keep_audit_days:
        audit = _(
            "The audit trail, which holds ids and verbs and nothing that you said, is deleted after %(days)s days."
        )
        audit %= {"days": days}
    else:
        audit = _("The audit trail, which holds ids and verbs and nothing that you said, is kept on.")
    return [
        *(says % {"days": days} for days, says in kept if days),
        _("Statements and episodes fade when nothing renews them: `forget_at` says when each is due, if it is."),
        _("What was forgotten stays in the trash for %(days)s days, and is deleted then.") % {"days": rules.trash_days},
        _("All else is kept until the application deletes it or you ask for it."),
        _("Copies of answers to the application are kept for a day; this export is deleted once it was downloaded."),
        audit,
    ]


def _recipients(subject: Subject) -> list[dict[str, str]]:
    """The application, staff, agents, models that received texts, and the endpoints that are configured now."""
    slug = subject.person.tenant.slug
    agent_says = _("An assistant that talked with you and is told what is remembered.")
    model_says = _("A language model that was told what you said.")
    found = [
        ("application", slug, _("Posts the turns and asks for contexts.")),
        ("staff", "", _("Operators of the hub who are allowed to see this application.")),
        *(("agent", agent, agent_says) for agent in _agents(subject)),
        *(("model_asked", name, model_says) for name in models_used(subject.person)),
    ]
    llm, embeddings, reranker = conf.llm(), conf.embeddings(), conf.reranking()
    if llm.mode == "openai":
        found.append(("model", _host(llm.base_url), _("Reads the turns, and proposes what to remember.")))
    if embeddings.mode == conf.EMBEDDINGS_OPENAI:
        says = _("Turns texts into numbers by which they are found.")
        found.append(("embeddings", _host(embeddings.base_url), says))
    if reranker.url:
        found.append(("reranker", _host(reranker.url), _("Orders what a search found.")))
    return [{"kind": kind, "name": name, "says": says} for kind, name, says in found]


def _agents(subject: Subject) -> list[str]:
    """Agents that had a session with the person or own a fact about them."""
    behind = EndUser.objects.behind(subject.person)
    sessions = Session.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    facts = Fact.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    return sorted({*sessions.distinct(), *facts.distinct()} - {""})


def _host(url: str) -> str:
    """The host alone: an address may hold a password."""
    return urlsplit(url).hostname or _HOST_OF_OPENAI
