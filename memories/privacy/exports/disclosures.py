"""What an export says besides the data (GDPR Art. 15(1) a–h): purposes, recipients, retention, logic, rights.

The sentences are in the language in force. Staff of the application and the hub's operators are told as roles.
"""

from typing import Any
from urllib.parse import urlsplit

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from memories import conf
from memories.models import CaseType, EndUser, Fact, Session
from memories.privacy.exports.computed import Subject
from memories.privacy.stores.keeping import models_asked

# What the client library asks when no address is configured.
_HOST_OF_OPENAI = "api.openai.com"
Chapter = dict[str, Any]


def about(subject: Subject) -> dict[str, Any]:
    """The `about` of an export: its language, the application, chapters of sentences, and who is told what is kept."""
    tenant = subject.person.tenant
    access = subject.profile == CaseType.ACCESS
    return {
        "language": get_language() or "en",
        "application": tenant.name or tenant.slug,
        "chapters": _of_access(subject) if access else _of_portability(),
        "recipients": _recipients(subject) if access else [],
    }


def _of_access(subject: Subject) -> list[Chapter]:
    rules = conf.rules(subject.person.tenant)
    return [
        _chapter("contents", _("What is in this file"), *_contents()),
        _chapter("purposes", _("What it is kept for"), *_purposes()),
        _chapter("sources", _("Where it comes from"), *_sources()),
        _chapter("retention", _("How long it is kept"), *_retention(rules)),
        _chapter("logic", _("What is decided by programs"), *_logic()),
        _chapter("rights", _("Your rights"), *_rights()),
    ]


def _of_portability() -> list[Chapter]:
    return [
        _chapter(
            "contents",
            _("What is in this file"),
            _("What you provided: what you said, word for word, what you stated to be remembered, and your record."),
            _("It is in a documented, open format (schema.json), so that another service can read it."),
            _("Not in it: replies, conclusions, summaries and scores. Ask for access (Art. 15 GDPR) to get those."),
        )
    ]


def _chapter(name: str, title: str, *says: str) -> Chapter:
    return {"name": name, "title": title, "says": list(says)}


def _contents() -> list[str]:
    return [
        _("Everything that is kept about you here, also what waits, was refused, or is in the trash."),
        _("Conclusions that a program drew are marked as inferred. Scores are told as the numbers that they are."),
        _("Left out are hashes and vectors, which are numbers computed from these texts, and what is other people's."),
        _("People who work here are named by their role."),
    ]


def _purposes() -> list[str]:
    return [
        _("So that assistants of this application remember what you told them, and can answer in view of it."),
        _("So that people who look after the application can correct what was remembered wrongly."),
    ]


def _sources() -> list[str]:
    return [
        _("The conversations that you had with the assistants, as the application passed them on."),
        _("What the application or the people who look after it entered about you."),
        _("Each statement names the turns that it rests on, and who said them."),
    ]


def _retention(rules: conf.Rules) -> list[str]:
    kept = (
        (rules.keep_turns_days, _("Turns are deleted after %(days)s days.")),
        (rules.keep_episodes_days, _("Episodes are deleted after %(days)s days.")),
        (rules.keep_runs_days, _("Records of the model's runs are deleted after %(days)s days.")),
    )
    return [
        *(says % {"days": days} for days, says in kept if days),
        _("Statements and episodes fade when nothing renews them: `forget_at` says when each is due, if it is."),
        _("What was forgotten stays in the trash for %(days)s days, and is deleted then.") % {"days": rules.trash_days},
        _("All else is kept until the application deletes it or you ask for it."),
        _("Copies of answers to the application are kept for a day; this export is deleted once it was downloaded."),
        _audit(rules.keep_audit_days),
    ]


def _audit(days: int) -> str:
    if not days:
        return _("The audit trail, which holds ids and verbs and nothing that you said, is kept on.")
    said = _("The audit trail, which holds ids and verbs and nothing that you said, is deleted after %(days)s days.")
    return said % {"days": days}


def _logic() -> list[str]:
    return [
        _("A language model, or simple rules where there is none, reads new turns and proposes statements about you."),
        _("Code keeps those that are sure and important enough, and holds the others back or asks a person."),
        _("Importance, and the time since a statement was last confirmed or used, decide when it fades."),
        _("The assistant is shown the statements that fit what you ask. Nothing else is decided by it."),
    ]


def _rights() -> list[str]:
    return [
        _("You can ask the application to correct what is wrong, to erase it, to restrict its use or to stop it."),
        _("You can have what you provided in a format for another service (portability)."),
        _("You can complain to the data protection authority where you live or work, or where it happened."),
    ]


def _recipients(subject: Subject) -> list[dict[str, str]]:
    told = [
        {
            "kind": "application",
            "name": subject.person.tenant.slug,
            "says": _("Posts the turns and asks for contexts."),
        },
        {"kind": "staff", "name": "", "says": _("Operators of the hub who are allowed to see this application.")},
    ]
    told += [
        {"kind": "agent", "name": agent, "says": _("An assistant that talked with you and is told what is remembered.")}
        for agent in _agents(subject)
    ]
    told += [
        {"kind": "model_asked", "name": name, "says": _("A language model that was told what you said.")}
        for name in models_asked(subject.person)
    ]
    return told + _endpoints()


def _agents(subject: Subject) -> list[str]:
    """Who of the agents had a session with the person or keeps a fact of theirs."""
    behind = EndUser.objects.behind(subject.person)
    sessions = Session.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    facts = Fact.objects.filter(end_user__in=behind).values_list("agent_id", flat=True)
    return sorted({*sessions.distinct(), *facts.distinct()} - {""})


def _endpoints() -> list[dict[str, str]]:
    """Processors outside of the hub that are shown texts, as it is set up now."""
    llm, embeddings, reranker = conf.llm(), conf.embeddings(), conf.reranking()
    told = []
    if llm.mode == "openai":
        told.append(_endpoint("model", llm.base_url, _("Reads the turns, and proposes what to remember.")))
    if embeddings.mode == conf.EMBEDDINGS_OPENAI:
        says = _("Turns texts into numbers by which they are found.")
        told.append(_endpoint("embeddings", embeddings.base_url, says))
    if reranker.url:
        told.append(_endpoint("reranker", reranker.url, _("Orders what a search found.")))
    return told


def _endpoint(kind: str, url: str, says: str) -> dict[str, str]:
    """The host alone: an address may hold a password."""
    return {"kind": kind, "name": urlsplit(url).hostname or _HOST_OF_OPENAI, "says": says}
