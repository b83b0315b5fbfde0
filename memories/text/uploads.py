"""Uploads belong to a session, not to memory: cut their blocks from turns, and keep their mentions out of memories."""

import re
from collections.abc import Iterator

_BLOCK_TAGS = ("uploaded_files", "current_uploads")

_THINGS = (
    "files?|documents?|docs?|attachments?|images?|photos?|pictures?|screenshots?|spreadsheets?|sheets?|archives?"
    "|folders?|datasets?|resumes?|cvs?|csvs?|pdfs?|zips?"
)
_FILE_NAME = r"\w\.(?:csv|docx?|gif|html?|jpe?g|json|log|md|pdf|png|pptx?|py|svg|tsv|txt|webp|xlsx?|xml|ya?ml|zip)"
_THING = rf"(?:\b(?:{_THINGS})\b|{_FILE_NAME}\b)"
_WORDS = r"[^.!?。！？\n]{0,80}?"
_ONE = r"(?:an?|the|this|that|these|those|some|several|two|three|\d+|my|our|his|her|their)\b"
# Events, not work: "uploaded a file", but neither "builds a form for uploading files" nor "works with CSV files".
_EVENTS = (
    rf"\b(?:re-?)?uploaded\b{_WORDS}{_THING}",
    rf"\buploading\b(?:\s+{_ONE}{_WORDS}{_THING}|{_WORDS}{_FILE_NAME}\b)",
    rf"{_THING}{_WORDS}\b(?:was|were|been|just|already|newly|recently|they|he|she|user|I)\s+uploaded\b",
    rf"\battached\s+(?:{_ONE}{_WORDS}{_THING}|[\w-]*{_FILE_NAME}\b)",
    r"/mnt/user-data/uploads\b",
    r"\b(?:uploaded_files|current_uploads)\b",
    r"上传(?:了|过|完)",
    r"(?:已经?|刚刚?|曾经?|正在|新|所)上传",
    r"上传(?:一|两|三|几|这|那|多|\d+)(?:个|份|张|篇|些|批|封)",
    r"上传的(?:文件|文档|附件|图片|照片|截图|表格|简历|压缩包|资料|材料|PDF)",
    rf"上传\S{{0,40}}?{_FILE_NAME}",
    r"(?:文件|文档|附件|图片|照片|截图|表格|简历|压缩包)(?:被|已被)上传",
)
_EVENT = re.compile("|".join(f"(?:{event})" for event in _EVENTS), re.IGNORECASE)
# A full stop inside report.pdf or 3.5 ends nothing.
_SENTENCE = re.compile(r".*?(?:[.!?]+(?=\s|\Z)|[。！？\n]+|\Z)\s*", re.DOTALL)


def cut_blocks(text: str) -> str:
    """`text` without its blocks of uploads (tags in any case); a block that is never closed is no block.

    A file may hold the closing tag: a block ends with the last one before the next block begins.
    """
    if "</" not in text:
        return text
    for tag in _BLOCK_TAGS:
        kept, place = [], 0
        for start, end in _blocks(text, tag):
            kept.append(text[place:start])
            place = end
        text = "".join([*kept, text[place:]])
    return text


def blocks(text: str) -> list[str]:
    """Its blocks: the words of files, not of whoever sent them."""
    return [text[start:end] for tag in _BLOCK_TAGS for start, end in _blocks(text, tag)]


def mentioned(text: str) -> bool:
    """Whether `text` mentions an upload, in English or Chinese."""
    return _EVENT.search(text) is not None


def scrub(text: str) -> str:
    """`text` without the sentences that mention an upload."""
    return "".join(sentence for sentence in _SENTENCE.findall(text) if not mentioned(sentence)).strip()


def _blocks(text: str, tag: str) -> Iterator[tuple[int, int]]:
    # One pass: a message full of opening tags must not cost a search of the rest for each.
    opening, closing = re.compile(f"<{tag}>", re.IGNORECASE), re.compile(f"</{tag}>", re.IGNORECASE)
    start = opening.search(text)
    while start and (end := closing.search(text, start.end())):
        following = opening.search(text, end.end())
        until = following.start() if following else len(text)
        last = end.end()
        for again in closing.finditer(text, last, until):
            last = again.end()
        yield start.start(), last
        start = following
