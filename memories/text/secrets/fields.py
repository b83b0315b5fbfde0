"""A name and its value in data: JSON, YAML, TOML, INI, env files, headers, query strings; pure.

Beside `api_key` or TOKEN such a value is a secret whatever its form, while a sentence says all kinds of things after
these words. So the form of the text around them decides what a value may be.
"""

import re

from memories.text.secrets.values import Announced, can_be_value, is_contract, is_described, is_technical

# How far back the rest of a name, and what stands before it on its line, are read.
_NAME_BACK, _LINE_BACK = 64, 40
_NAME = re.compile(r"[A-Za-z0-9_.-]*\Z")
_LINE_BEGINS = re.compile(
    r"(?:\A|\n)[ \t]{0,32}(?:[-*+>$][ \t]{1,3})?(?:(?:export|setx?|ENV|ARG|env|declare -x)[ \t]{1,3})?[\"'`]?\Z"
)
_LINE_ENDS = re.compile(
    r"""["'`*]{0,2}[ \t]{0,8}(?:[,;。，；]|[ \t](?:#|//)|[}\])]{1,2})?[ \t]{0,8}(?:\\?["'`]|\Z|\r?\n|\\n)"""
)
_IN_QUERY = ("?", "&", ";")
_IN_FLOW = ("{", ",", "(")

# A token of a text, of a page or of a model, which no one must keep.
_NO_SECRET_TOKEN = re.compile(
    r"(?:page|next|prev|previous|continuation|cursor|sync|resume|pad|eos|bos|sep|cls|mask|unk|stop|start|end|special|first|last"
    r"|per|max|min|num|total|prompt|completion|input|output|image|audio|reasoning|thinking|cached|new|each|cancel|cancellation"
    r"|design|color|syntax|lexer|parser|merge|reward|governance|erc20|nft)[ _.-]?\Z",
    re.IGNORECASE,
)
_HEX_WORD = re.compile(r"[0-9a-f]{8,}\Z|[0-9A-F]{8,}\Z")
_WORD = re.compile(r"[A-Za-z]+\Z")
_LABEL = re.compile(r"[A-Z][a-z]+\Z|[A-Z]{1,6}\Z|(?:[A-Z]?[a-z]+)(?:[A-Z][a-z]+)+\Z")
# A name of something else: my-app-tls, db_credentials, arg1, response.token, Token2.
_WORDS = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)+\Z")
_VARIABLE = re.compile(r"[A-Za-z]+(?:_[A-Za-z]+)*_?\d{0,2}\Z|_*[A-Za-z]\w*(?:\??\.[A-Za-z_]\w*)+\Z")
# In these a single word can be the value; a line may be a sentence, or code.
_SURE = ("json", "query", "env")
_LEAST, _LEAST_COUNT = 4, 6
# Of keywords whose values this module judges; passwords, codes and words have rules for data, too.
_RULES = ("key", "token")


def form_of(text: str, start: int, end: int, sign: str) -> str:
    """The form in which the name that has its last word from `start` to `end` stands before `sign` and its value:
    "json" (a name in quotes), "query", "env", "line" (nothing else on its line), "inline"; "": in a sentence.

    `sign` is all that stands between name and value.
    """
    if "\n" in sign or any(map(str.isalpha, sign)):
        return ""
    first = start
    if text[start].isascii():
        first = start - len(_NAME.search(text, max(0, start - _NAME_BACK), start)[0])  # type: ignore[index]
    before, name = text[max(0, first - _LINE_BACK) : first], text[first:end]
    # A cut beginning is no beginning of a line.
    before = before if first <= _LINE_BACK else f"\0{before}"
    after = sign.lstrip("\\")[:1]
    if after in ('"', "'", "`", "]") and before.rstrip("\\")[-1:] in ('"', "'", "`", "["):
        return "json"
    is_tight = sign.rstrip("\"'`") == "="
    if is_tight and before.endswith(_IN_QUERY):
        return "query"
    begins = bool(_LINE_BEGINS.search(before)) or before.endswith(('"', "'", "`"))
    if "=" in sign and name.isupper() and (begins or is_tight):
        return "env"
    if begins or not text[start].isascii():
        return "line"
    return "inline" if " " not in name and (is_tight or before.rstrip().endswith(_IN_FLOW)) else ""


def is_value(form: str, rule: str, found: Announced, *, name: str, sign: str) -> bool:
    """Whether the value of a field is a secret. `rule` is that of its keyword; `name` what precedes the keyword in the
    whole name."""
    value = found.value
    if rule not in _RULES or not can_be_value(value) or len(value) < _LEAST or " " in value:
        return False
    if rule == "token" and (_NO_SECRET_TOKEN.search(name) or is_contract(value)):
        return False
    if form == "line" and not _LINE_ENDS.match(found.after) or found.after.startswith(("..", "…")):
        return False
    if value.isdigit():
        return len(value) >= (_LEAST if found.quoted or rule == "key" else _LEAST_COUNT)
    return bool(_HEX_WORD.match(value)) or (not is_technical(value) and _is_no_name(form, rule, found, sign))


def _is_no_name(form: str, rule: str, found: Announced, sign: str) -> bool:
    """Whether the value is no word, type, label, resource or variable, of which such fields speak, too."""
    value, is_sure, is_yaml = found.value, form in _SURE, form == "line" and ":" in sign
    if _WORD.match(value):
        return (is_sure or (is_yaml and rule == "key")) and not _LABEL.match(value) and not is_described(value)
    if _WORDS.match(value):
        return False
    if _VARIABLE.match(value) and not found.quoted:
        return form in ("query", "env") or (is_yaml and "." not in value)
    return any(map(str.isdigit, value)) or is_sure
