"""A hub full of hostile text, bilingual, and the addresses of all of its pages."""

import re
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import Group
from django.urls import URLResolver, get_resolver, reverse

from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.curation.turn_authors import correct_author
from memories.models import AuditEvent, Author, EndUser, Fact, Operator, Session, Turn
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.hostile import ALL, STRINGS, pieces
from tests.profiles.defining import define

# Of a list's cell as much is shown.
SHORT, NAME = 250, 90
TURNS = [("user", "你好"), ("user", f"我对花生过敏\n{ALL}"), ("assistant", ALL)]
# What ends a session, is made for scripts, or tells nothing of what is changed by verbs.
_NO_PAGE = re.compile(r"\(\?P|logout|jsi18n|autocomplete|/r/|memories/(?!operator).*/history/")
_ARGUMENT = re.compile(r"<(?:\w+:)?(\w+)>")


def made(operator: Operator) -> dict[str, Any]:
    """One of each, by the name of its model: hostile wherever people can put text; more, so that lists show it all."""
    names = pieces(NAME)
    tenant = factories.tenant(slug="acme-prod", name=names[0], extraction_guidance=ALL, signal_phrases={"goal": names})
    for piece in pieces(SHORT):
        _crowd(factories.end_user(tenant, external_id=piece, display_name=f"华桂珍 {piece}"[:255]), piece)
    person = factories.end_user(tenant, external_id=names[1], display_name=names[2], metadata={"note": ALL})
    session = factories.session(person, TURNS, session_id=names[3], agent_id=names[4])
    Turn.objects.update(name=names[5], metadata={"a": ALL}, tool_calls=[{"name": ALL}])
    session.turns.filter(number=2).update(own=[[0, 6]], is_doubtful=True)
    correct_author(
        turn_id=session.turns.get(number=1).pk, author=Author.APPLICATION, reason=ALL, actor=Actor.operator(operator),
        now=factories.NOW,
    )  # fmt: skip
    records = _memories(person, session, names)
    define(tenant)
    group = Group.objects.create(name=names[6])
    Fact.objects.update(source_error=ALL)
    correct_fact(
        fact_id=records["fact"].pk, tenant=None, content=f"对坚果过敏\n{ALL}", reason=ALL,
        actor=Actor.operator(operator), now=factories.NOW,
    )  # fmt: skip
    selector = Selector(tenant=tenant, session=session.pk)
    done = roll_back(selector=selector, actor=factories.COMMAND, now=factories.NOW, reason=ALL)
    key, _ = factories.api_key(tenant, name=names[7])
    held = factories.decay_pass(tenant, state="held", counts={"held": 9, "memories": 10})
    case = case_of(
        person, "scoped", reference=names[0], channel=names[1][:40], told=ALL, extension_reason=ALL,
        extended_at=factories.NOW, extension_notice_on=factories.NOW.date(),
    )  # fmt: skip
    others = {"privacycase": case, "group": group, "auditevent": AuditEvent.objects.latest("id"), "operator": operator}
    of_hub = {"tenant": tenant, "apikey": key, "decaypass": held, "change_set": done.id, "number": 1, **others}
    return {**records, "session": session, "enduser": person, "section": "work_context", "name": "travel", **of_hub}


def _crowd(person: EndUser, piece: str) -> None:
    """What the lists show of one piece."""
    session = factories.session(person, [("user", piece)], session_id=piece, agent_id=piece)
    factories.run(session, status="failed", failure="model_timeout")
    factories.review_item(factories.fact(person, piece, key=piece[:100], status="pending"))
    factories.episode(session, piece, key_topics=[piece])


def _memories(person: EndUser, session: Session, names: list[str]) -> dict[str, Any]:
    run = factories.run(session, status="parked", failure="model_timeout", refusals={"low_confidence": 2})
    name = pieces(200)[0]
    told = {"subject": name, "predicate": names[8], "object": name, "valid_from": None, "valid_to": "2026-01-01"}
    said = {
        "structured": {"a": ALL},
        "triples": [told],
        "value": pieces(500)[0],
        "key": names[8],
        "tags": list(STRINGS),
        "raw": ALL,
    }
    fact = factories.fact(person, f"对花生过敏\n{ALL}", extraction=run, agent_id=names[4], **said)
    factories.evidence(fact, session.turns.get(number=2), "我对花生过敏")
    factories.profile_section(person, summary=f"在物流公司工作\n{ALL}", extraction=run)
    factories.profile_revision(person, f"在物流公司工作\n{ALL}", before=ALL, extraction=run, reason=ALL)
    words = {"key_topics": list(STRINGS), "actions_taken": pieces(200), "outcomes": pieces(200)}
    episode = factories.episode(session, f"说到花生过敏\n{ALL}", last_number=3, **words)
    item = factories.review_item(factories.fact(person, ALL, status="pending"), known=fact, note=ALL)
    factories.poor_episode(factories.session(person, TURNS, agent_id=names[4]), ALL, last_number=3, **words)
    triple = factories.triple(person, names[0], names[1][:100], names[2], agent_id=names[4])
    factories.triple(person, "user", names[3][:100], names[0])
    graph = {"graphtriple": triple, "graphentity": triple.subject}
    return {**graph, "fact": fact, "episode": episode, "reviewitem": item, "extractionrun": run}


def pages(
    operator: Operator, known: dict[str, Any], *, part: int = 0, parts: int = 1
) -> Iterator[tuple[str, str, str]]:
    """All pages behind the sign-in that the operator can open, from the resolver, each with its HTML and its template;
    a list also searched for what is hostile. Of several parts each has other pages, and the first the start."""
    client = signed_in(operator)
    routes = sorted(set(_routes(get_resolver().url_patterns)))
    searched = f"{reverse('admin:memories_fact_changelist')}?q=%22%3E%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E"
    # Some routes lead to the same page.
    for where in list(dict.fromkeys([*(f"/{_filled(route, known)}" for route in routes), searched]))[part::parts]:
        answer = client.get(where)
        if answer.status_code == 200 and b"<html" in getattr(answer, "content", b""):
            yield where, answer.content.decode(), str(answer.templates[0].name)


def _routes(patterns: list[Any], before: str = "") -> Iterator[str]:
    """Those of the admin that lead to pages."""
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        elif route.startswith("admin/") and not _NO_PAGE.search(route):
            yield route


def _filled(route: str, known: dict[str, Any]) -> str:
    """The route with its arguments; an id is that of the model that it is named after, or that it stands behind."""
    behind = route.split("/")[2] if route.count("/") > 2 else ""

    def value(found: re.Match[str]) -> str:
        model = found[1].removesuffix("_id")
        record = known.get(model, known.get(behind, known["fact"]))
        return str(getattr(record, "pk", record))

    return _ARGUMENT.sub(value, route)
