"""The one guard of what keys write: text that speaks to a model is not served before an operator has reviewed it.

An operator's own words are not checked. What merely looks like a secret is not held when the user states it: an
application that stores an order number does so on purpose.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories import budgets, conf, content_policy
from memories.conf import Rules
from memories.content_policy import Road
from memories.curation.statements.write_trust import WriteTrust, may_change
from memories.exceptions import BeyondTrust, Fault, ReviewNeeded
from memories.facts.candidate import Candidate
from memories.files.passages import ChangedText, Place
from memories.models import Episode, Fact, Status, Tenant, Trust
from memories.models.memories.episodes import TEXTS
from memories.text import value_texts
from memories.text.injection import detection, meaning
from memories.text.secrets.redaction import looks_secret, redact_text
from memories.trust import rank

_JUDGED_AT_ONCE = 200
_NUMBER = re.compile(r"\d+")
# The texts of a fact that a context or a prompt can show.
FACT_TEXTS = ("content", "key", "value", "source_error", "raw")


def flags_of_fact(fact: Fact | Candidate, write_trust: WriteTrust) -> tuple[str, ...]:
    """Why a stated fact must be reviewed before it is served, as its flags; empty when nothing speaks against it."""
    found = {*detection.flags(fact.content, fact.value, fact.raw)}
    found |= {*detection.flags(fact.source_error, fact.key, " ".join(fact.tags))}
    if speaks_beside(fact.structured, _of_document(fact)):
        found.add(detection.INSTRUCTIONS)
    return _relevant_flags(found, write_trust)


def speaks_beside(*values: Any) -> bool:
    """Whether names and texts of JSON that is served with a statement speak to a model, one after the other."""
    text = "\n".join(text for value in values for text in value_texts.strings(value))
    return bool(text) and detection.are_meant_for_model(text)


def flags_for_everybody(fact: Fact) -> tuple[str, ...]:
    """Why not everybody should be served the fact, whoever states it: it speaks to a model, or may hold a secret."""
    values = [*texts_of(fact).values(), _of_document(fact)]
    texts = [" ".join(value_texts.strings(value)) for value in values]
    secret = any(looks_secret(text) or redact_text(text)[1] for text in texts)
    found = ((detection.POSSIBLE_SECRET, secret), (detection.INSTRUCTIONS, detection.are_meant_for_model(*texts)))
    return tuple(flag for flag, is_found in found if is_found)


def flags_for_group(text: str, write_trust: WriteTrust) -> tuple[str, ...]:
    """Why the other members of a group should not be told this text: the flags of a text, and those for everybody."""
    secret = looks_secret(text)
    found = {*flags_of_text(text, write_trust)}
    found |= {detection.INSTRUCTIONS} if detection.are_meant_for_model(text) else set()
    return tuple(sorted(found | ({detection.POSSIBLE_SECRET} if secret else set())))


def flags_of_text(text: str, write_trust: WriteTrust) -> tuple[str, ...]:
    """The flags of a text of the profile, or of an episode."""
    return _relevant_flags(detection.flags(text, "", ""), write_trust)


def newly_speaks(text: ChangedText) -> Place | None:
    """The first passage of a file, or of a note, that newly speaks to a model: by a phrase, or by its meaning.

    What merely looks like a secret is none: notes name commits and ids.
    """
    return next(text.findings(_says_phrase), None) or next(_meant(text), None)


def check_new_words(tenant: Tenant, road: Road, name: str, text: ChangedText) -> None:
    """The content policy of what is new in a file or a note. Errors: ContentForbidden."""
    if content_policy.in_force(tenant):
        content_policy.check(tenant, road, [name, *(text.after[one.start : one.end] for one in text.sentences)])


def refuse_at(found: Place, text: str, detail: str) -> NoReturn:
    """Errors: ReviewNeeded with the lines of the text, which the detail has as `%(where)s`."""
    first, last = found.lines_in(text)
    where = _("Lines %(first)d to %(last)d") % {"first": first, "last": last}
    raise ReviewNeeded(detail % {"where": where}, faults=[Fault("/content", ReviewNeeded.code, where)])


def _says_phrase(passage: str) -> bool:
    budgets.check_time()
    return detection.speaks_to_model(passage)


def _meant(text: ChangedText) -> Iterator[Place]:
    """The new sentences that speak to a model by their meaning.

    Notes have numbers, and these move the vector of a short sentence at random. What speaks to a model does so with
    other numbers, too.
    """
    for start in range(0, len(text.sentences), _JUDGED_AT_ONCE):
        budgets.check_time()
        places = text.sentences[start : start + _JUDGED_AT_ONCE]
        found = _speaking(places, [text.after[place.start : place.end] for place in places])
        yield from _speaking(found, [_NUMBER.sub("1", text.after[place.start : place.end]) for place in found])


def _speaking(places: list[Place], said: list[str]) -> list[Place]:
    """The places at which one of these sentences speaks to a model."""
    return [place for place, speaks in zip(places, meaning.each_speaks(said), strict=True) if speaks]


def speaks_to_model(name: str) -> bool:
    """Whether the name of a file does, by a phrase."""
    return detection.speaks_to_model(name)


def check_fact(fact: Fact, texts_before: Mapping[str, Any], write_trust: WriteTrust) -> None:
    """Check a fact that a key has changed, before it is saved: a changed fact cannot wait for review.

    Errors: ReviewNeeded when this writer may not change it, or when its texts changed and speak to a model.
    """
    # A pinned or locked suggestion would block the user's own word.
    is_kept = write_trust.trust != Trust.USER and (fact.pinned or fact.locked)
    if is_kept or not may_change(fact, write_trust, conf.rules(fact.tenant)):
        raise ReviewNeeded
    if texts_of(fact) != texts_before and detection.INSTRUCTIONS in flags_of_fact(fact, write_trust):
        raise ReviewNeeded


def check_ends(fact: Fact, write_trust: WriteTrust, *, is_own: bool = False) -> None:
    """Check that this writer may end what the fact says; `is_own`: its key stated it, and nobody else touched it.

    Errors: BeyondTrust where the writer may not change it either.
    """
    if write_trust.trust != Trust.USER and not is_own and not may_change(fact, write_trust, conf.rules(fact.tenant)):
        raise BeyondTrust


def check_outranks(trust: str, write_trust: WriteTrust) -> None:
    """Errors: BeyondTrust where what the writer would end has more trust than the writer."""
    if write_trust.trust != Trust.USER and rank(write_trust.trust) < rank(trust):
        raise BeyondTrust


def check_ends_episode(episode: Episode, write_trust: WriteTrust) -> None:
    """Errors: BeyondTrust where the writer may not state other words of the episode either."""
    if not write_trust.is_believed(conf.rules(episode.tenant)):
        raise BeyondTrust


def outranking(write_trust: WriteTrust) -> Q:
    """Rows with more trust than the writer, as check_outranks() has it of one."""
    if write_trust.trust == Trust.USER:
        return Q(pk__in=[])
    return Q(trust__in=[trust for trust in Trust.values if rank(trust) > rank(write_trust.trust)])


def beyond(write_trust: WriteTrust, rules: Rules) -> Q:
    """Rows with a trust and a status that this writer may not end, as check_ends() has it of one fact; a key's own
    facts are ended one by one."""
    if write_trust.trust == Trust.USER or write_trust.is_believed(rules):
        return outranking(write_trust)
    return outranking(write_trust) | Q(status=Status.ACTIVE)


def check_none(rows: QuerySet[Any], beyond_trust: Q) -> None:
    """Errors: BeyondTrust where one of the rows is of those that the writer may not end."""
    if rows.filter(beyond_trust).exists():
        raise BeyondTrust


def texts_of(fact: Fact) -> dict[str, Any]:
    """The texts of the fact now, for check_fact() after a change."""
    return {name: getattr(fact, name) for name in (*FACT_TEXTS, "tags", "structured")}


def _of_document(fact: Fact | Candidate) -> dict[str, Any]:
    """What a document says of it in its own words, which is told again."""
    given: dict[str, Any] = (fact.document or {}).get("given", {})
    return given


def check_episode(episode: Episode, stated: Mapping[str, Any], write_trust: WriteTrust) -> None:
    """Check what a key states of an episode.

    Errors: ReviewNeeded for new words of a writer that is not believed, or that speak to a model.
    """
    changed = [stated[name] for name in TEXTS if name in stated and stated[name] != getattr(episode, name)]
    lines = [line for one in changed for line in ([one] if isinstance(one, str) else one)]
    if changed and not write_trust.is_believed(conf.rules(episode.tenant)):
        raise ReviewNeeded
    # One by one, and together, because a context shows them in a row.
    for text in (*lines, "\n".join(lines)):
        if detection.INSTRUCTIONS in flags_of_text(text, write_trust):
            raise ReviewNeeded


def _relevant_flags(flags: Iterable[str], write_trust: WriteTrust) -> tuple[str, ...]:
    """All flags; those of a text by the user, only if it speaks to a model."""
    return tuple(flag for flag in sorted(flags) if write_trust.trust != Trust.USER or flag == detection.INSTRUCTIONS)
