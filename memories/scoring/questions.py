"""What a question is about, without the words around it, and what is no question; pure.

"Can you give me a summary of how I handled the budget across our conversations? Mention only five items." is about how
I handled the budget. The rest speaks of the talk itself and of the form of the answer. It brings no turn nearer, and
words that nobody said count against every turn.
"""

import re

_NUMBER = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten)"
_ITEMS = r"(?:items?|things?|points?|words|sentences|bullets?)"
# "in my chat app" and "in our sessions table" are about an app and a table.
_ENDS = r"(?=\s*(?:[.?!,;:]|$)|\s+(?:about|on|so|in|where|when|that|with|and|did|do|have|how|what|which)\b)"
_ENGLISH = (
    # The form of the answer, a sentence of its own.
    (
        rf"(?<=[.?!])\s*(?:please\s+)?(?:mention|list|name|give|include|use)\s+(?:only|exactly|at\s+most|no\s+more\s+than)\b"
        rf"[^.?!\n]{{0,20}}?\b{_NUMBER}\s+{_ITEMS}[.!]*\s*$"
    ),
    r"(?<=[.?!])\s*(?:please\s+)?(?:be|keep\s+it)\s+(?:brief|short|concise)[.!]*\s*$",
    # The request.
    (
        r"^\s*(?:please\s+)?(?:(?:can|could|would|will)\s+you\s+)?(?:please\s+)?"
        r"(?:(?:list|summari[sz]e|explain|describe|recap|outline)(?:\s+(?:to|for)\s+me)?"
        r"|(?:tell|show|give|walk|provide)\s+(?:me|us)(?:\s+through)?|provide(?=\s+an?\s))"
        r"(?:\s+step\s+by\s+step)?"
        r"(?:\s+(?:the\s+(?:chronological\s+)?order\s+in\s+which|an?\s+(?:\w+\s+){0,2}(?:summary|overview|recap)\s+of))?"
        r"(?=\s)"
    ),
    # The talk.
    (
        r",?\s{0,2}\b(?:across|throughout|during|in|over|through)\s+(?:all\s+)?(?:of\s+)?(?:our|my)\s+"
        r"(?:(?:past|previous|earlier|recent)\s+)?"
        rf"(?:conversation|session|discussion|chat|talk|message|request|question)s?{_ENDS}(?:,?\s+in\s+order\b)?"
    ),
    (
        r"\b(?:I\s+(?:brought\s+up|mentioned|asked\s+about|told\s+you\s+about)"
        r"|we(?:'ve|\s+have)?\s+(?:discussed|covered|talked\s+about))\b"
        r"(?:\s+different\s+(?:\w+\s+)?(?:aspects|topics|concepts|parts|things)(?:\s+(?:of|about|related\s+to))?)?"
    ),
    r",?\s{0,2}\b(?:so\s+far|over\s+time|in\s+chronological\s+order)(?=\s*(?:[.?!,]|$))|,\s+in\s+order(?=\s*(?:[.?!,]|$))",
)
_CHINESE = (
    (
        r"(?<=[。？！])\s*请?只(?:需|要)*(?:列出|说出|提到|给出)"
        r"[一二两三四五六七八九十\d]{1,3}[个项条点件][^。？！\n]{0,4}[。！]*\s*$"
    ),
    r"(?<=[。？！])\s*请?(?:简短|简单|简要)(?:地)?(?:回答|说明)(?:一下)?[。！]*\s*$",
    (
        r"^\s*(?:请|麻烦)?你?(?:能不能|能否|可不可以|可以|能)?请?(?:帮我|给我|为我|跟我)?"
        r"(?:列出|总结|概括|回顾|梳理|归纳|说说|讲讲)(?:一下)?(?=[^\s，。？！?])"
    ),
    r"在?我们(?:所有|之前|以前|过去|最近|历次)?的?(?:对话|聊天|谈话|会话|讨论|交流)(?:过程)?(?:当中|里面|中|里)，?",
    (
        r"我(?:们)?(?:之前|以前|曾经|先前)?(?:提到|提起|说到|聊到|谈到)过?"
        r"的?(?:不同)?(?:方面|话题|内容)?的?(?:先后)?顺序"
    ),
    r"到目前为止|按照?(?:时间|先后)的?顺序",
)
# People tell of themselves in whole sentences: so many words, of Chinese so many characters.
_LEAST_TOLD = 6
_OURSELVES = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our|ours|ourselves)\b|[我咱]", re.IGNORECASE)
_AUXILIARY = (
    r"(?:am|are|is|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)(?:n['’]t)?"
)
_REQUEST = (
    r"(?:please|tell|show|give|list|name|find|remind|recap|summari[sz]e|explain|describe|outline|recommend|suggest"
    r"|help|compare|write|draft|make|create|plan|look\s+up|search|check)"
)
# A question or a request in some sentence, or an answer that somebody waits for.
_ASKS = re.compile(
    r"[?？]"
    r"|(?:^|[.!;:\n])\W*(?:(?:and|so|but|then|now|ok(?:ay)?)\W+)?"
    rf"(?:what|which|who|whom|whose|why|how|(?:when|where)\s+{_AUXILIARY}|{_AUXILIARY}|{_REQUEST})\b"
    rf"|\b(?:what|who|whom|when|where|why|how)\s+{_AUXILIARY}\s+(?:I|you|he|she|it|we|they|my|our|the)\b"
    r"|\b(?:can|could|would|will)\s+you\b|\bI(?:\s+(?:am|was)|['’]m)?\s+wonder(?:ing|ed)?\s+(?:if|whether|what|who|when|where|how)\b"
    r"|\bI(?:\s+would|['’]d)?\s+(?:want|like|need)\s+to\s+know\s+(?:if|whether|what|who|when|where|why|how)\b"
    r"|\b(?:remind|tell|show|give|help)\s+(?:me|us)\b"
    r"|什么|哪|谁|几[个次天点岁]|多少|怎[么样]|如何|[吗呢]\W*$|为何|何时|是否|能否|能不能|可不可以"
    r"|^\W*请|帮我|告诉我|推荐|列出",
    re.IGNORECASE,
)
_AROUND = tuple(re.compile(pattern, re.IGNORECASE) for pattern in (*_ENGLISH, *_CHINESE))
_UNIT = re.compile(r"[\u2e80-\u9fff]|[^\W\u2e80-\u9fff]+")
_WORD, _GAPS = re.compile(r"\w"), re.compile(r" {2,}")
# Letters of East Asia, which stand for a word each here, and words of other letters.
_EASTERN = r"\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORDS = re.compile(rf"[{_EASTERN}]|[^\W_{_EASTERN}]+(?:['\u2019.][^\W_{_EASTERN}]+)*")
_SENTENCE = re.compile(r"(?<=[.!?:\n])\s+|\n+")
# Where more of a text's words are written large, it is a heading or shouted, and nothing can be told from it. A few
# words may be names, all of them.
_MOST_LARGE, _FEW_WORDS = 0.5, 3


def names(text: str) -> list[str]:
    """What a text names: words that are written large within a sentence (Leiden), or have large letters or digits
    within (GitHub, k8s). Large words behind a name are part of it (World Cup). Scripts without large letters have none.
    """
    found: list[str] = []
    words = large = 0
    for sentence in _SENTENCE.split(text):
        end = -1
        for place, match in enumerate(_WORDS.finditer(sentence)):
            word, words = match[0], words + 1
            is_marked = _is_marked(word)
            if not is_marked and (place == 0 or not _is_large(word)):
                continue
            large += 1
            if not is_marked and sentence[end : match.start()] == " ":
                found[-1] += f" {word}"
            else:
                found.append(word)
            end = match.end()
    return found if large <= _MOST_LARGE * words or words <= _FEW_WORDS else []


def _is_large(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and not word.startswith(("I'", "I\u2019"))


def _is_marked(word: str) -> bool:
    """Whether it is written as no plain word is: GitHub, CI, k8s."""
    if any(letter.isupper() for letter in word[1:]):
        return not word.startswith(("I'", "I\u2019"))
    return word[0].isalpha() and any(map(str.isdigit, word))


def tells(text: str) -> bool:
    """Whether people tell of themselves with it ("The neighbours have my ladder again."), and ask for nothing.

    What it brings to mind was said in other words. Words that it shares with a whole session are there by chance.
    """
    told = _UNIT.findall(text)
    return len(told) >= _LEAST_TOLD and bool(_OURSELVES.search(text)) and not _ASKS.search(text)


def subject(text: str) -> str:
    """The question without what speaks of the talk and of the answer, or the whole of it if nothing else is left."""
    left = text
    for pattern in _AROUND:
        left = pattern.sub(" ", left)
    return _GAPS.sub(" ", left).strip() if left != text and _WORD.search(left) else text
