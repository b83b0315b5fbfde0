"""What may stand in a skill, which people read who never met those whose trajectories taught it.

A text may have the words that trajectories of at least two people have. A word that only one of them has could be that
person's, whatever it looks like; names, numbers and codes must be had by two. Beside that it is checked as a fact of a
group is: it must not speak to a model, nor look like a secret. What fails is cut, and never stored.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum

from django.db.models import Q
from django.db.models.functions import Lower

from memories import content_policy
from memories.content_policy import Road
from memories.exceptions import ContentForbidden
from memories.models import EndUser, Tenant
from memories.models.memories.skills import LONGEST_TEXT
from memories.skills.attempts import SaidWords
from memories.text import words
from memories.text.injection import detection, meaning
from memories.text.secrets.redaction import looks_secret, redact_text
from memories.text.words import SpokenWords

# So many people must have a word that looks like somebody's, or that most texts lack.
LEAST_PEOPLE = 2
# So much of the distinctive words of a text must be in the trajectories that it cites.
_SUPPORTED = 0.5
_OF_PROCEDURES = {"tools"}
_QUOTED = re.compile(r"`([^`]*)`")
_WORDS_OF_A_NAME = 3
_WORDS_OF_A_PERSON = 4
_RUNS_FOREIGN = re.compile(
    r"\|\s*(?:ba|z|da|k)?sh\b|\|\s*(?:python|perl|node|ruby)\d*\b|\beval\b|base64\s+(?:-d|--decode)|\bIEX\b"
    r"|(?:curl|wget|iwr|Invoke-WebRequest)\b.{0,80}://"
)

_PERSONAL = re.compile(
    # Addresses of mail, handles, numbers of telephones and of people, accounts, folders of users, logins in addresses.
    r"[\w.+-]{1,64}\s?(?:@|＠|\[at\]|\(at\))\s?[\w-]{1,63}(?:\s?(?:\.|\[dot\]|\(dot\))\s?[\w-]{1,63})+"
    r"|(?<![\w`/])@[A-Za-z][\w.-]{2,}"
    r"|(?<!\w)[+(（]?\d(?:[\s()（）./–-]{0,2}\d){6,}(?!\w)"
    r"|[０-９]{6,}"
    r"|\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{4}){2,8}\b"
    r"|\b\d{17}[\dXx]\b"
    r"|(?i:/home/|[/\\]users[/\\]|/var/mail/|(?<![\w/])~(?=[a-z]))[^\s/\\`]+"
    r"|\b[a-z][a-z0-9+.-]*://[^\s/@]{1,80}@"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|\b(?:born|birthday|date of birth|passport|social security|ssn|patient|diagnos\w+)\b"
    r"|身份证|护照|生日|出生|手机号|电话号码|住址|病历|诊断"
)


class Refusal(StrEnum):
    """Why a text is cut."""

    TOO_LONG = "too_long"
    SECRET = "possible_secret"  # noqa: S105 (a code)
    SPEAKS = "speaks_to_model"
    PERSONAL = "personal"
    ONE_PERSON = "one_person"
    UNSUPPORTED = "unsupported"
    FORBIDDEN = "forbidden"


def refusal_of(text: str, said: SaidWords, cited: Sequence[SpokenWords]) -> Refusal | None:
    """Why these words may not stand in a skill that others read; None: they may, as far as who has them goes. `cited`:
    what they are said to rest on."""
    statement = words.of(text)
    people = said.people
    for code in statement.codes:
        if sum(one.has_code(code) for one in people) < LEAST_PEOPLE:
            return Refusal.ONE_PERSON
    for number in _NUMBER.findall(text):
        whole_number = re.compile(rf"(?<![\d]){re.escape(number)}(?![\d])")
        if sum(whole_number.search(one.text) is not None for one in people) < LEAST_PEOPLE:
            return Refusal.ONE_PERSON
    for piece in statement.pieces:
        having = sum(one.says(piece) for one in people)
        # An ordinary word that nobody has is the writer's own; a name that nobody has was made up.
        least = LEAST_PEOPLE if having or piece.is_name else 0
        if (piece.is_name or piece.is_distinctive) and having < least:
            return Refusal.ONE_PERSON
    distinctive = [piece for piece in statement.pieces if piece.is_distinctive]
    found = [piece for piece in distinctive if any(one.says(piece) for one in cited)]
    if not cited or len(found) < _SUPPORTED * len(distinctive):
        return Refusal.UNSUPPORTED
    return None


_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w])")


def alone(text: str) -> Refusal | None:
    """What speaks against the text whatever it rests on: also against an operator's, in a skill."""
    if len(text) > LONGEST_TEXT or not text.strip():
        return Refusal.TOO_LONG
    if redact_text(text)[1] or looks_secret(text) or "[redacted" in text:
        return Refusal.SECRET
    if _PERSONAL.search(text):
        return Refusal.PERSONAL
    return Refusal.SPEAKS if speaks(text) else None


def speaks(text: str) -> bool:
    """Whether it tells a model more than a procedure does: whom to trust or obey, what to keep from people, to send or
    to pay, what to run from elsewhere. That a tool is to be called is what a procedure says."""
    claims = detection.claims(text) - _OF_PROCEDURES
    if claims or _RUNS_FOREIGN.search(text):
        return True
    # Names of tools and values move the vector of a short sentence at random; what says something speaks for itself.
    quoted = [one for one in _QUOTED.findall(text) if len(one.split()) > _WORDS_OF_A_NAME or not one.isascii()]
    return meaning.speak_to_model([_QUOTED.sub("it", text), *quoted])


def naming(tenant: Tenant, texts: Iterable[str]) -> set[str]:
    """Those of these texts that name one of the tenant's people, by an external id or a name. One statement."""
    found = {text: _spans(text) for text in dict.fromkeys(texts)}
    every = sorted(set().union(*found.values()))
    rows = EndUser.objects.filter(tenant=tenant).annotate(id_in=Lower("external_id"), name_in=Lower("display_name"))
    called = rows.filter(Q(id_in__in=every) | Q(name_in__in=every)).values_list("id_in", "name_in") if every else ()
    names = {name for row in called for name in row if name}
    return {text for text, spans in found.items() if not names.isdisjoint(spans)}


def is_forbidden(tenant: Tenant, text: str) -> bool:
    """Whether the tenant's content policy keeps this text from being remembered."""
    try:
        content_policy.check(tenant, Road.UPKEEP, [text])
    except ContentForbidden:
        return True
    return False


def _spans(text: str) -> set[str]:
    """The words of a text, lower-cased, and what up to four of them make; also those of a path or an identifier."""
    text = unicodedata.normalize("NFKC", text).lower()
    whole = [one.strip(".") for one in re.findall(r"[^\s`'\"“”(),;:!?，。；：！？（）]+", text)]
    parts = re.findall(r"[^\W_]+", text)
    spans = {
        " ".join(found[at : at + size])
        for found in (whole, parts)
        for size in range(1, _WORDS_OF_A_PERSON + 1)
        for at in range(len(found) - size + 1)
    }
    # An identifier in a path has its own signs: "/notes/bob.jones/2".
    spans.update(re.findall(r"[\w.@+-]+", text))
    # Nothing parts Chinese and Japanese names, of two to four letters, from other words.
    places = [at for at, letter in enumerate(text) if "\u3040" <= letter <= "\u9fff"]
    return spans | {text[at : at + size] for at in places[:LONGEST_TEXT] for size in (2, 3, 4)}
