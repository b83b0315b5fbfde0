"""Reasons why a memory waits for review: it may contain a secret, or instructions to a model.

Instructions are recognised by what they claim, in eight languages. The phrases of data/*.toml are searched in each
reading of the text (unmasking.py). Where a memory is written, the meaning of its sentences counts as well (meaning.py).
A person's wish about language, tone, form, names, units, topics or times is no claim.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from memories import budgets
from memories.text.injection import meaning, phrases, unmasking
from memories.text.injection.phrases import LanguageRules, Rule
from memories.text.injection.verdicts import cached_verdict
from memories.text.secrets.redaction import looks_secret

POSSIBLE_SECRET, INSTRUCTIONS = "possible_secret", "instructions"


class FoundClaim(NamedTuple):
    """A claim and the normalized sentence that makes it; no sentence if the form of the text makes it."""

    claim: str
    sentence: str = ""


# A longer sentence is read in pieces that overlap.
_LONGEST_SENTENCE = 600
_OVERLAP = 150
_CACHED = 2_048
_LONGEST_CACHED = 2_100

# Phrases have one word for each of these. All patterns are bounded, because they run on hostile text.
_NAMED = (
    (re.compile(r"\b[a-z0-9._%+-]{1,64}(?:@|\s?\[at\]\s?|\s\(at\)\s)[a-z0-9.-]{1,100}[a-z]{2,12}\b"), " zmail "),
    (
        re.compile(r"(?:https?|ftp|hxxps?)://[^\s\"'<>)\]]{1,500}|\bwww\.[a-z0-9-]{1,60}\.[^\s\"'<>)\]]{2,300}"),
        " zurl ",
    ),
    (
        re.compile(
            r"\b[a-z0-9-]{2,40}\.(?:com|net|org|io|dev|ru|cn|xyz|example|test|evil|de|fr|site|info|co|app|top|me)(?:/[^\s\"'<>)\]]{0,300})?\b"
        ),
        " zurl ",
    ),
    (re.compile(r"\b[a-z]{2}\d{2}(?:\s?[a-z0-9]{4}){2,8}(?:\s?[a-z0-9]{1,4})?\b|\biban\b"), " ziban "),
    (re.compile(r"\b(?:0x[0-9a-f]{8,64}|bc1[a-z0-9]{8,80})\b"), " zwallet "),
    (
        re.compile(
            r"\b\d{1,3}(?:[.,]\d{1,2})?\s?(?:%|percent\b|per cent\b|prozent\b|pour cent\b|por ?ciento\b|por cento\b"
            r"|процент\w{0,3}|パーセント)"
        ),
        " zpct ",
    ),
    (
        re.compile(
            r"[$€£¥₽]\s?\d[\d.,]{0,15}k?\b|\b\d[\d.,]{0,15}k?\s?(?:[$€£¥₽]|(?:usd|eur|euros?|dollars?|dolares|reais|rubles?|yuan|yen|rmb)\b|рубл\w{0,3}|евро|доллар\w{0,3}|万?元|万?円|万?块|欧元|美元)"
        ),
        " zsum ",
    ),
)
# Ends of sentences; a full stop inside a word is none.
_SENTENCE = re.compile(r"[.!?…]{1,20}(?=[\s\"'”’»)\]]|$)|[。！？!?]{1,20}|\n{1,20}(?=\n)|(?<=[\w ]{12})\n")
_PAUSE = re.compile(r"[,;:，；：、()（）\[\]{}«»„“”\"|<>=/—–]+|\s-+\s")
_NOT_WORDS = re.compile(r"[^\w, ]+|_+")
_SPACES = re.compile(r"\s+")
# A clause begins after these; what comes before can have another subject.
_BREAKS = (" , ", " so ")
_WORDS = re.compile(r"\w+")


def preload() -> None:
    """Load the phrases now (half a second): processes that are forked later share them."""
    phrases.forms()
    phrases.languages()


def flags(content: str, value: str, quote: str, *, is_own: bool = False) -> tuple[str, ...]:
    """The reasons for a review of a fact with these texts; empty when there are none. `is_own`: the person's words."""
    texts = (content, value, quote)
    secret = (POSSIBLE_SECRET,) if any(map(looks_secret, texts)) else ()
    return (*secret, INSTRUCTIONS) if are_meant_for_model(*texts, is_own=is_own) else secret


def are_meant_for_model(*texts: str, is_own: bool = False) -> bool:
    """Whether one of them speaks to a model, by a phrase or by its meaning.

    For texts that are being written: the second takes 2 ms a sentence. `is_own`: the person said it themselves, so its
    meaning must be plainer. Errors: RequestTooCostly, before a text that a request has no time for.
    """
    budgets.check_time()
    return any(map(speaks_to_model, texts)) or meaning.speak_to_model(texts, is_own=is_own)


def speaks_to_model(text: str) -> bool:
    """Whether a phrase tells a model what to do or whom to believe; of a very long text both ends are read."""
    if not text:
        return False
    return _cached(text) if len(text) <= _LONGEST_CACHED else _has_claim(text)


@cached_verdict(_CACHED)
def _cached(text: str) -> bool:
    return _has_claim(text)


def _has_claim(text: str) -> bool:
    return next(claimed(text), None) is not None


def claims(text: str) -> set[str]:
    """All that the text claims: instructions, role, authority, money, secrecy, sending, others, tools, payment."""
    return {found.claim for found in claimed(text)}


def claimed(text: str) -> Iterator[FoundClaim]:
    """The claims of each reading of the text with their sentences, some of them repeatedly."""
    for reading in unmasking.readings(text):
        yield from (FoundClaim(form.claim) for form in phrases.forms() if form.pattern.search(reading))
        yield from _claims_in(reading, phrases.languages())


def says_one_of(text: str, languages: Iterable[LanguageRules]) -> bool:
    """Whether a reading of the text makes a claim of these rules, which are not the guard's own."""
    return any(True for reading in unmasking.readings(text) for _ in _claims_in(reading, languages))


def _claims_in(reading: str, languages: Iterable[LanguageRules]) -> Iterator[FoundClaim]:
    spoken = normalized(reading)
    whole = " ".join(spoken)
    words = set(_WORDS.findall(whole))
    for language in languages:
        # Most texts have no word of any rule.
        bits = language.bits(words, whole)
        rules = [rule for rule in language.rules if rule.needs & bits == rule.needs] if bits else []
        for sentence in spoken if rules else ():
            yield from (FoundClaim(rule.claim, sentence) for rule in _fitting(sentence, language, rules))


def normalized(reading: str) -> list[str]:
    """The sentences of a folded text: words with one space between them, pauses as a comma between spaces."""
    for pattern, name in _NAMED:
        reading = pattern.sub(name, reading)
    spoken = [plain for plain in map(_plain, _SENTENCE.split(reading)) if plain]
    if len(spoken) > 2 and sum(sentence.count(" ") + 1 for sentence in spoken) <= 2 * len(spoken):
        # Words. Parted. By. Full. Stops.
        spoken = [" ".join(spoken)]
    return [part for sentence in spoken for part in _parts(sentence) if part]


def _plain(sentence: str) -> str:
    sentence = _PAUSE.sub(" , ", sentence)
    sentence = _NOT_WORDS.sub(" ", sentence)
    return _SPACES.sub(" ", sentence.replace(",", " , ")).strip(" ,")


def _parts(sentence: str) -> Iterator[str]:
    step = _LONGEST_SENTENCE - _OVERLAP
    for start in range(0, max(len(sentence) - _OVERLAP, 1), step):
        yield sentence[start : start + _LONGEST_SENTENCE]


def _fitting(sentence: str, language: LanguageRules, rules: list[Rule]) -> Iterator[Rule]:
    bits = language.bits(set(_WORDS.findall(sentence)), sentence)
    for rule in rules:
        if rule.needs & bits != rule.needs:
            continue
        found = rule.compiled.search(sentence)
        if found and not _is_excused(sentence, found, language, rule):
            yield rule


def _is_excused(sentence: str, found: re.Match[str], language: LanguageRules, rule: Rule) -> bool:
    """Whether the phrase is harmless here: an exception fits, or the clause is about the speaker's own doings, or about
    what somebody built."""
    if rule.unless and rule.unless.search(sentence):
        return True
    if not rule.is_own or language.own is None:
        return False
    start = max(sentence.rfind(pause, 0, found.start() + 1) for pause in _BREAKS)
    clause = re.sub(r"\A[ ,]*(?:so )?", "", sentence[max(start, 0) :])
    if language.is_report(clause, sentence):
        return True
    is_own = language.own.match(clause) is not None
    return is_own and not (language.model and language.model.search(sentence))
