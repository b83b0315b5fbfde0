"""Why a fact that may be kept waits for review all the same: it may hold a secret, or speak to a model; pure."""

import re

from memories.pipeline.redaction import looks_secret

POSSIBLE_SECRET, INSTRUCTIONS = "possible_secret", "instructions"

# Phrases that address a model, and the names of our own tags: in a prompt they could pass for our words.
_INSTRUCTIONS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s(?:\w{1,10}\s){0,3}(?:previous|prior|above|earlier|preceding|system)\s"
    r"(?:\w{1,10}\s){0,2}(?:instructions?|prompts?|rules|messages)\b"
    r"|(?:忽略|无视|忘记|不要理会)(?:掉|你)?(?:所有|全部|一切)?(?:之前|以上|上面|此前|先前|前面|系统)的?(?:所有|全部|一切)?"
    r"(?:指令|指示|提示词?|规则|说明|要求)"
    r"|</?\s{0,3}(?:memory|known_facts|profile|turns?|fact)\b[^>\n]{0,100}>",
    re.IGNORECASE,
)


def flags(content: str, value: str, quote: str) -> tuple[str, ...]:
    """What speaks against serving a fact with these texts unseen; empty when nothing does."""
    texts = (content, value, quote)
    found = {
        POSSIBLE_SECRET: any(map(looks_secret, texts)),
        INSTRUCTIONS: any(map(_INSTRUCTIONS.search, texts)),
    }
    return tuple(flag for flag, applies in found.items() if applies)
