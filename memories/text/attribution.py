"""Parts of a summary that are told as what an assistant or a tool said; pure."""

import re

from memories.models import Trust

_PREFIXES = {Trust.ASSISTANT: "The assistant said: ", Trust.TOOL: "A tool said: "}
# A part that names an assistant or a tool first says itself whose it is …
_SPEAKERS = (
    r"(?:assistants?|agents?|ai|bots?|tools?|assistent\w*|helfer|ki|werkzeug|asistente|agente|herramienta|outil|assistente"
    r"|ferramenta|ассистент\w*|помощник\w*|агент\w*|инструмент\w*)\b"
)
_ATTRIBUTED = re.compile(
    rf"\W*(?:(?:the|an?|der|die|das|el|la|l['’]|le|o|os|les)\s*)?(?:{_SPEAKERS}|助手|代理|机器人|工具|アシスタント|エージェント|ツール)",
    re.IGNORECASE,
)
# … unless it goes on with the person.
_GOES_ON = re.compile(
    r"(?:[,.:—–-]|\b(?:and|but|while|und|aber|während|et|mais|y|pero|mas|и|а|но|что))\s+"
    r"(?:(?:the|der|die|das|el|la|le|o|a)\s+|l['’])?(?:users?|nutzer\w*|benutzer\w*|usuari[oa]\w*|utilisat\w+|пользовател\w*)\b"
    r"|[，,、；。而并]\s*(?:用户|使用者|ユーザー?)",
    re.IGNORECASE,
)


def attributed(part: str, trust: Trust) -> str:
    """The part as it is told of somebody with that trust: the person's words as they are."""
    return part if is_attributed(part) else _PREFIXES.get(trust, "") + part


def is_attributed(part: str) -> bool:
    """Whether the part itself tells that an assistant or a tool said it, and nothing of the person besides."""
    if part.lstrip().startswith(tuple(_PREFIXES.values())):
        return True
    return _ATTRIBUTED.match(part) is not None and _GOES_ON.search(part) is None


def plain(text: str) -> str:
    """The text without our own words, for those who judge what it says."""
    for prefix in _PREFIXES.values():
        text = text.replace(prefix, "")
    return text
