"""Whether the value after "password:" or "my API key is" can be a secret, or is only a word or a type; pure."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

_WORDS = tomllib.loads((Path(__file__).parent / "data" / "plain_words.toml").read_text(encoding="utf-8"))
_PLAIN = frozenset(f"{_WORDS['said']} {_WORDS['written']}".split())
_SENTENCE = frozenset(_WORDS["sentence"].split())
_PLACEHOLDER = frozenset(_WORDS["placeholder"].split())
_GOES_ON = frozenset(_WORDS["goes_on"].split())
_UNITS = _WORDS["unit"].split()

_MASK = re.compile(r"[*xX•.#_?-]+\Z")
_NO_VALUE = re.compile(
    r"""
      \[redacted:                                  # our own mark
    | [$%]?[{<(\[] | ![A-Za-z]+\Z                               # ${X}, {{x}}, <x>, (x)
    | \$[A-Z_][A-Z0-9_]*\Z | \$[a-z_]+\Z | %\w+%\Z | %[sdr]\Z | :[a-z_]+\Z   # variables of shells, PHP, SQL
    | [a-z][a-z0-9+.-]*:// | ~?/ | \.{1,2}/ | [A-Za-z]:\\                   # addresses and paths
    | [\w.]+\(  | [A-Za-z_][\w.]*\[                # calls, indices, generic types
    | (?:self|this|os|env|process|req|request|user|settings|config|conf|args|params|credentials|secrets|data|form|body
        |ctx|app|options|opts|props|state|event|model|instance|payload|input|vault|import\.meta)\.
    | [A-Za-z_]+[=:,|][A-Za-z0-9] | [a-z]+(?:/[a-z]+)+\Z                    # min=8, required|string, yes/no
    | [A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z              # NAMES_OF_VARIABLES
    | [\w.+-]+@[\w-]+\.[a-z]{2,}\Z                 # a mail address
    | [\w./-]+\.(?:conf|crt|env|ini|json|key|md|pem|py|toml|ts|txt|ya?ml)\Z
    | (?:[Cc]trl|[Aa]lt|[Oo]ption|[Ss]hift|[Cc]md|[Cc]ommand|[Mm]eta|[Ss]uper|[Ww]in)\+   # shortcuts
    | \S{0,60}(?:\.\.\.|…)\Z                       # shortened
    | v?\d+(?:\.\d+)+\Z | \d{4}[-/.]\d\d?[-/.]\d\d?\Z | \d\d?:\d\d\Z         # versions, hosts, dates, times
    """,
    re.VERBOSE,
)
# Names of algorithms and formats, and "256bit".
_TECHNICAL = re.compile(
    r"(?:sha|md|base|utf|aes|rsa|hs|rs|es|ps|ed|oauth|tls|ssl|http|ipv?|wpa|pkcs|argon|bcrypt|ntlmv|ascii|iso|x|v|k\d?s?"
    r"|pbkdf|scrypt|blake|win|windows|ios|web|mp|s|p|otp|1password|2fa|mfa|ec|g|h|i|c|level|step|part|page|option|type|rule|case|field|question)"
    rf"[-_]?\d{{0,4}}(?:[-_/][a-z0-9]{{1,12}})?\Z|\d+[-_]?(?:{'|'.join(_UNITS)}|st|nd|rd|th|x|k|m|g|px|am|pm)\Z",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)*_?\d{0,2}\Z")
_SIGNS = re.compile(r"[!@#$%^&*+=~?|\\]")
_RANGE = re.compile(r"\d{1,3}[-~]\d{1,3}\Z")
_DIGITS = re.compile(r"\d(?:[ -]?\d){2,}\Z")
_LETTERS = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*\Z")
_DESCRIBES = re.compile(r".{3,}(?:ed|ing|able|ible|ive|ous|ful|less|ly|est|proof)\Z", re.IGNORECASE)
_CAMEL_NAME = re.compile(r"(?:[A-Z]+[a-z]+){2,}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z", re.IGNORECASE)
# Of a contract on a chain; its token is a coin.
_CONTRACT = re.compile(r"0x[0-9A-Fa-f]{1,40}\Z")
_HASH = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\Z", re.IGNORECASE)
# What can follow a value that could be a word: the end of the sentence, or a conjunction.
_CLAUSE_ENDS = re.compile(r"""["'`)*_]{0,3}\s{0,2}(?:\Z|[\n.,;!。，；！、）)|]|(?:and|but)\b)""")
_NEXT_WORD = re.compile(r"\s{0,2}([A-Za-z']+)")
_COUNTED = re.compile(rf"\s?(?:[{_WORDS['unit_zh']}]|(?i:{'|'.join(_UNITS)})\b|[%$€¥])")


# What joins a value to its keyword, and what only stands before both.
_JOINED = ("sign", "verb")
_UNJOINED = ("owned", "named")


@dataclass(frozen=True)
class Announced:
    """A value in its sentence. `link` is what joins it to its keyword: sign (: =), verb (is, 是) or nothing: after an
    account or an option (near), after "my password" (owned), after "the wifi password" (named).

    `after` is the beginning of the text after it.
    """

    value: str
    link: str
    quoted: bool = False
    after: str = ""


def is_secret(rule: str, found: Announced) -> bool:
    """Whether the value can be what its keyword announces; `rule` is that of the keyword (data/secrets.toml)."""
    return can_be_value(found.value) and announces(rule, found)


def announces(rule: str, found: Announced) -> bool:
    """As is_secret(), of what can_be_value()."""
    return bool(_RULES[rule](found))


def is_random(text: str, *, length: int, digits: int = 1) -> bool:
    """A run of letters and digits that is no word, name, count or format."""
    runs = len(text) >= length and " " not in text
    mixed = sum(map(str.isdigit, text)) >= digits and any(map(str.isalpha, text))
    return runs and mixed and not _TECHNICAL.match(text) and not _IDENTIFIER.match(text)


def can_be_value(value: str) -> bool:
    """Whether something stands there: no mask, placeholder, variable, address, path or call."""
    return bool(value) and not (_MASK.match(value) or _NO_VALUE.match(value) or _is_placeholder(value))


def is_contract(value: str) -> bool:
    """Whether it is an address on a chain: what a token is called there is public."""
    return bool(_CONTRACT.match(value))


def is_technical(value: str) -> bool:
    """The name of an algorithm or a format, or a number with its unit."""
    return bool(_TECHNICAL.match(value))


def is_described(value: str) -> bool:
    """An adjective, or a word of sentences."""
    return bool(_DESCRIBES.match(value)) or value.casefold() in _SENTENCE


def _is_placeholder(value: str) -> bool:
    parts = re.split(r"[-_. ]", value.casefold())
    return value.casefold().strip("?!.,:;*") in _PLAIN or (len(parts) > 1 and not _PLACEHOLDER.isdisjoint(parts))


def _is_password(found: Announced) -> bool:
    value, is_joined = found.value, found.link in _JOINED
    if found.link in _UNJOINED and not _may_stand_beside(found):
        return False
    if " " in value:
        return found.quoted and is_phrase(value.split(" "))
    if _DIGITS.match(value):
        return not _RANGE.match(value) and _is_number_alone(found, shortest=4 if is_joined else 6)
    if _LETTERS.match(value):
        return is_joined and _is_word_alone(found)
    has_letter, has_digit = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    mixed = (has_letter and has_digit) or (_SIGNS.search(value) and (has_letter or has_digit))
    shortest = 4 if is_joined else 6
    return bool(mixed) and len(value) >= shortest and not _TECHNICAL.match(value) and not _COUNTED.match(found.after)


def _may_stand_beside(found: Announced) -> bool:
    """Without a word that joins them: at the end of its clause, and where it is nobody's password more than a word of
    forms with a digit or two."""
    value = found.value
    if " " in value or not _CLAUSE_ENDS.match(found.after):
        return False
    is_numbered = value.isdigit() or value.casefold().rstrip("0123456789") in _PLAIN
    is_certain = len(value) >= 8 and sum(map(str.isdigit, value)) >= 2 and not is_numbered
    return found.link == "owned" or is_certain


def is_phrase(words: list[str]) -> bool:
    """Whether these words are a passphrase and no sentence: four that join nothing, or one that is mixed."""
    if not _SENTENCE.isdisjoint(word.casefold() for word in words):
        return False
    return len(words) >= 4 or any(any(map(str.isdigit, word)) and any(map(str.isalpha, word)) for word in words)


def _is_number_alone(found: Announced, *, shortest: int) -> bool:
    """Digits that count nothing and that end their clause."""
    if sum(map(str.isdigit, found.value)) < shortest or _COUNTED.match(found.after):
        return False
    following = _NEXT_WORD.match(found.after)
    return following is None or following[1].casefold() in _GOES_ON


def _is_word_alone(found: Announced) -> bool:
    """A word as a password: at the end of its clause, and no word that describes passwords or fills forms."""
    value = found.value
    words = value.casefold().split("-")
    if found.quoted:
        return len(value) >= 4 and _SENTENCE.isdisjoint(words)
    if _DESCRIBES.match(value) or (found.link == "sign" and _CAMEL_NAME.match(value)):
        return False
    if not _PLAIN.isdisjoint(words) or not _SENTENCE.isdisjoint(words) or len(words) in (2, 3):
        return False
    return len(value) >= (4 if found.link == "sign" else 6) and bool(_CLAUSE_ENDS.match(found.after))


def _is_key(found: Announced) -> bool:
    if found.value.isdigit():
        return found.link == "sign" and _is_number_alone(found, shortest=8)
    return found.link != "near" and is_random(found.value, length=8)


def _is_token(found: Announced) -> bool:
    value = found.value
    is_id = _UUID.match(value) or _HASH.match(value) or is_contract(value)
    return found.link != "near" and not is_id and is_random(value, length=12, digits=2)


def _is_code(found: Announced) -> bool:
    count = sum(map(str.isdigit, found.value))
    return bool(_DIGITS.match(found.value)) and 3 <= count <= 8 and _is_number_alone(found, shortest=3)


def _is_pin(found: Announced) -> bool:
    is_number = found.value.isdigit() and 4 <= len(found.value) <= 8
    return is_number and found.link != "near" and _is_number_alone(found, shortest=4)


_RULES = {
    "words": lambda found: is_phrase(found.value.split()),
    "password": _is_password,
    "key": _is_key,
    "token": _is_token,
    "code": _is_code,
    "pin": _is_pin,
}
