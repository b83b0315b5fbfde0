"""A name and its value in data: JSON, YAML, TOML, INI, env files, headers, query strings; pure.

Beside `api_key` or TOKEN such a value is a secret whatever its form, while a sentence says all kinds of things after
these words. So the form of the text around them decides what a value may be.
"""

import re

from memories.text.secrets.values import Announced, is_contract, is_described, is_technical

# How far back the rest of a name, and what stands before it on its line, are read.
_NAME_BACK, _LINE_BACK = 64, 40
# Of a text that is read backwards.
_NAME = re.compile(r"[\w.-]*")
# What precedes the name on its line.
_LINE_BEGINS = re.compile(
    r"[ \t]{0,32}(?:(?:[-*+>$;]|#|//)[ \t]{0,3})?(?:(?:export|setx?|ENV|ARG|env|declare -x)[ \t]{1,3}|\$env:)?"
    r"""["'`]?\Z"""
)
# "OpenAI API key": what a person writes before a value on a line of its own.
_LABEL_BEGINS = re.compile(r"(?:[A-Za-z]{1,12} ){1,3}\Z")
_LINE_ENDS = re.compile(
    r"""["'`*]{0,2}[ \t]{0,8}(?:[,;。，；]|[}\])]{1,2})?[ \t]{0,8}"""
    r"""(?:\\?["'`]|\Z|\r?\n|\\n|(?<=[ \t])(?:#|//)|(?<=[;,])[\w.-]{1,30}=)"""
)
_OPENS, _CLOSES = ('"', "'", "`", "["), ('"', "'", "`", "]")
_IN_QUERY = ("?", "&", ";")
_IN_FLOW = ("{", ",", "(")

# A token of a text, of a page or of a model, which no one must keep.
_OF_OTHER_TOKENS = """
page next prev previous continuation cursor sync resume pad eos bos sep cls mask unk stop start end special first last
per max min num total prompt completion input output image audio reasoning thinking cached new each cancel cancellation
design color syntax lexer parser merge reward governance erc20 nft
"""
_NO_SECRET = tuple(_OF_OTHER_TOKENS.split())
_HEX_WORD = re.compile(r"[0-9a-f]{8,}\Z|[0-9A-F]{8,}\Z")
_WORD = re.compile(r"[A-Za-z]+\Z")
_LABEL = re.compile(r"[A-Z][a-z]+\Z|[A-Z]{1,5}\Z|(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]+)+\Z")
_OF_SECRETS = re.compile(r"auth|token|secret|key|passw|cred", re.IGNORECASE)
_NO_WORD = re.compile(r"[A-Z]{8,}\Z|[a-z]+[A-Z]{2,}[A-Za-z]{2,}\Z")
# A name of something else: my-app-tls, db_credentials, arg1, response.token, Token2.
_WORDS = re.compile(r"_?[A-Za-z]+(?:[-_][A-Za-z]+)+\Z")
_VARIABLE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)*_?\d{0,2}\Z|_*[A-Za-z]\w*(?:\??\.[A-Za-z_]\w*)+\Z")
# In these a single word can be the value; a line may be a sentence, or code.
_SURE = ("json", "query", "env")
# The shortest value by the rule of its keyword. Codes and words have the same form everywhere.
_LEAST = {"key": 4, "token": 4, "password": 3}
# A bare number after "token" may count tokens.
_LEAST_COUNT = 6
# Of a bare value no more is read.
LONGEST = 256


def form_of(text: str, start: int, end: int, sign: str) -> str:
    """The form in which the name that has its last word from `start` to `end` stands before `sign` and its value:
    "json" (a name in quotes), "query", "env", "line" (nothing else on its line), "label" (on a line, after words),
    "inline"; "": in a sentence.

    `sign` is all that stands between name and value.
    """
    if "\n" in sign or any(map(str.isalpha, sign)):
        return ""
    first = start
    if text[start].isascii():
        first = start - _NAME.match(text[max(0, start - _NAME_BACK) : start][::-1]).end()  # type: ignore[union-attr]
    # A cut beginning is no beginning of a line.
    before = text[:first] if first <= _LINE_BACK else f"\0{text[first - _LINE_BACK : first]}"
    if sign.lstrip("\\")[:1] in _CLOSES and before.rstrip("\\")[-1:] in _OPENS:
        return "json"
    is_tight = sign.rstrip("\"'`") == "="
    if is_tight and before.endswith(_IN_QUERY):
        return "query"
    return _form_on_line(before, text[first:end], "=" in sign, is_tight)


def _form_on_line(before: str, name: str, is_assigned: bool, is_tight: bool) -> str:
    line = before[before.rfind("\n") + 1 :]
    begins = before.endswith(('"', "'", "`")) or bool(_LINE_BEGINS.match(line))
    if is_assigned and name.isupper() and (begins or is_tight):
        return "env"
    if begins or not name.isascii():
        return "line"
    if _LABEL_BEGINS.match(line):
        return "label"
    return "inline" if " " not in name and (is_tight or before.rstrip().endswith(_IN_FLOW)) else ""


def may_be_value(rule: str, value: str) -> bool:
    """Whether is_value() can be true of it in any form: that costs less than to find the form."""
    return rule in _LEAST and len(value) >= _LEAST[rule] and " " not in value


def is_value(form: str, rule: str, found: Announced, *, name: str, sign: str) -> bool:
    """Whether the value of a field, which can be one, is a secret. `rule` is that of its keyword; `name` what precedes
    the keyword in the whole name."""
    value = found.value
    if not may_be_value(rule, value) or (rule == "token" and is_contract(value)):
        return False
    if rule != "key" and _names_no_secret(name):
        return False
    ends = len(value) == LONGEST or _LINE_ENDS.match(found.after)
    if (form in ("line", "label") and not ends) or found.after.startswith(("..", "…")):
        return False
    if rule == "password":
        return form in _SURE and not value.isalpha() and value.isalnum() and not is_technical(value)
    if value.isdigit():
        return len(value) >= (_LEAST_COUNT if rule == "token" and not found.quoted else _LEAST[rule])
    return bool(_HEX_WORD.match(value)) or (not is_technical(value) and _is_no_name(form, rule, found, sign))


def _names_no_secret(name: str) -> bool:
    folded = name.casefold()
    return folded.endswith(_NO_SECRET) or (folded.endswith((" ", "_", ".", "-")) and folded[:-1].endswith(_NO_SECRET))


def _is_no_name(form: str, rule: str, found: Announced, sign: str) -> bool:
    """Whether the value is no word, type, label, resource or variable, of which such fields speak, too."""
    value, is_yaml = found.value, form == "line" and ":" in sign
    # In JSON only numbers have no quotes: what has none is code.
    is_sure = (form in _SURE or found.quoted) and form != "label" and (found.quoted or form != "json")
    if _WORD.match(value):
        is_expected = is_sure or (is_yaml and rule == "key") or _NO_WORD.match(value)
        return bool(is_expected) and not (_LABEL.match(value) or _OF_SECRETS.search(value) or is_described(value))
    if _WORDS.match(value) or (form == "label" and rule != "key"):
        return False
    if _VARIABLE.match(value) and not found.quoted:
        return form in ("query", "env") or (is_yaml and "." not in value)
    return any(map(str.isdigit, value)) or is_sure
