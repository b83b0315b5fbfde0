"""Uploads belong to a session, not to memory: their blocks are cut from turns, their mentions kept out of memories."""

import re

_BLOCK_TAGS = ("uploaded_files", "current_uploads")

_THINGS = (
    "files?|documents?|docs?|attachments?|images?|photos?|pictures?|screenshots?|spreadsheets?|sheets?|archives?"
    "|folders?|datasets?|resumes?|cvs?|csvs?|pdfs?|zips?"
)
_FILE_NAME = r"\w\.(?:csv|docx?|gif|html?|jpe?g|json|log|md|pdf|png|pptx?|py|svg|tsv|txt|webp|xlsx?|xml|ya?ml|zip)"
_THING = rf"(?:\b(?:{_THINGS})\b|{_FILE_NAME}\b)"
_WORDS = r"[^.!?。！？\n]{0,80}?"
_ONE = r"(?:an?|the|this|that|these|those|some|several|two|three|\d+|my|our|his|her|their)\b"
# What happened, not what somebody works on: "uploaded a file", but neither "builds a form for uploading files" nor
# "works with CSV files".
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
    """`text` without its blocks of uploads (tags in any case); a block that is never closed is no block."""
    for tag in _BLOCK_TAGS:
        text = _cut(text, re.compile(f"<{tag}>", re.IGNORECASE), re.compile(f"</{tag}>", re.IGNORECASE))
    return text


def mentioned(text: str) -> bool:
    """Whether `text` tells of an upload, in English or Chinese."""
    return _EVENT.search(text) is not None


def scrub(text: str) -> str:
    """`text` without the sentences that tell of an upload."""
    return "".join(sentence for sentence in _SENTENCE.findall(text) if not mentioned(sentence)).strip()


def _cut(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """One pass from left to right: a message full of opening tags must not cost a search of the rest for each."""
    kept: list[str] = []
    place = 0
    while (start := opening.search(text, place)) and (end := closing.search(text, start.end())):
        kept.append(text[place : start.start()])
        place = end.end()
    return "".join([*kept, text[place:]])
