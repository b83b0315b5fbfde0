"""The parts of a model's summary that may be kept, because the turns support them, and in whose name.

A summary is shown in the hub's name. So a part is left out if it has a number, a mail address or the like that nobody
said, an address to write or send to that the person did not name, a permission for an assistant that is not in the
person's words, or words of a turn that speaks to a model. What is in the words of an assistant or a tool is told as
what they said.
"""

import re
from collections.abc import Callable, Sequence

from memories.llm.prompts.session_summary import LONGEST_SUMMARY
from memories.models import Role, Trust
from memories.text import attribution, echo, sentences, support, uploads
from memories.text.cleaning import clean_lines
from memories.text.injection import detection, flagged_turns
from memories.text.secrets.redaction import redact_text
from memories.text.support import Embed, SourceTexts
from memories.text.transcript import TranscriptTurn

# Clauses that could be sentences of their own.
_CLAUSE = re.compile(r"[^;；]+(?:[;；]\s*|\Z)|[;；]")
_ADDRESS = re.compile(r"https?://|\bwww\.|[\w.+-]@[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_ENDS = " ;；"
_SENTENCE_ENDS = (". ", "! ", "? ", "\n", "。", "！", "？")
# Who permits …
_CONSENT = re.compile(
    r"\b(?:allow(?:s|ed)?|lets?|permit(?:s|ted)?|authori[sz]e[sd]?|approve[sd]?|consent(?:s|ed)?|agree[sd]?|grant(?:s|ed)?"
    r"|waive[sd]?|empower(?:s|ed)?|permission|approval|erlaub\w*|gestatte\w*|genehmig\w*|bevollmächtig\w*|zugestimmt"
    r"|stimmte?\b.{1,60}\bzu|autori[sz]\w*|permet\w*|permis|permit\w*|perme\w*|consent\w*|approuv\w*|aprob\w*|aprov\w*"
    r"|aceit\w*|acept\w*|accept\w*|разреш\w*|позвол\w*|одобр\w*|уполномоч\w*|соглас\w*)\b"
    r"|授权|允许|同意|批准|准许|許可|承認|許し|認め|任せ",
    re.IGNORECASE,
)
# … an assistant something, or that nobody is asked.
_ITS_OWN_WAY = re.compile(
    r"\b(?:assistants?|agents?|bots?|ai|helpers?|assistente\w*|assistenten|helfer|ki|asistente|ayudante|agente|ajudante"
    r"|помощник\w*|ассистент\w*|агент\w*|бот\w*)\b"
    r"|\b(?:without|ohne|sans|sin|sem|без) (?:\w+ ){0,2}(?:ask\w*|check\w*|confirm\w*|consult\w*|approv\w*|rückfrage\w*"
    r"|nachfrage\w*|zu fragen|bestätigung|demander|consulter|consulta\w*|preguntar\w*|perguntar|вопросов|подтвержд\w*"
    r"|спроса)|助手|代理|机器人|アシスタント|エージェント|ボット|无需询问|不用问|不必问|无需确认|確認なし|確認は不要",
    re.IGNORECASE,
)


class SummedTurns:
    """The turns of a summary, and the earlier summary that it continues."""

    def __init__(self, turns: Sequence[TranscriptTurn], earlier: str = "", embed: Embed | None = None) -> None:
        texts = [(turn.text, turn.at.date()) for turn in turns]
        # A summary may name the time of a turn.
        moments = list(dict.fromkeys(f"{turn.at:%Y-%m-%d %H:%M}" for turn in turns))
        self._everybody = SourceTexts(users=texts, existing=[earlier, *moments])
        # What the earlier summary tells as an assistant's words are still an assistant's.
        parts = [clause for start, end in sentences.spans(earlier) for clause in _CLAUSE.findall(earlier[start:end])]
        own = [part for part in parts if not attribution.is_attributed(part)]
        others: dict[str, list[str]] = {Role.ASSISTANT: list(filter(attribution.is_attributed, parts)), Role.TOOL: []}
        orders: list[str] = []
        for turn in turns:
            if not turn.is_user:
                is_flagged = flagged_turns.is_flagged(turn.turn)
                spoken, order = (
                    flagged_turns.split_instructions(support.compared_part(turn.text))
                    if is_flagged
                    else (turn.text, "")
                )
                others[turn.turn.role].append(spoken)
                orders += [order] if order else []
        users = [text for text, turn in zip(texts, turns, strict=True) if turn.is_user]
        self._person = SourceTexts(
            users=users,
            existing=[*own, *moments],
            assistants=[*others[Role.ASSISTANT], *orders],
            tools=others[Role.TOOL],
            embed=embed,
        )
        # What is said without speaking to a model, and what is not.
        existing = [*own, *moments, *others[Role.ASSISTANT], *others[Role.TOOL]]
        self._harmless = SourceTexts(users=users, existing=existing, assistants=orders) if orders else None

    def supported(self, text: str) -> str:
        """The text without its unsupported parts; perhaps empty."""
        return without(text, self._is_unsupported)

    def attributed(self, text: str) -> str:
        """The text; what is in the words of an assistant or a tool is told as what they said."""
        return rewritten(text, lambda part: attribution.attributed(part, self._person.trust_of_summary(part)))

    def _is_unsupported(self, part: str) -> bool:
        if self._everybody.lacks(part) or (_ADDRESS.search(part) is not None and self._person.lacks_code(part)):
            return True
        if self._harmless and not self._harmless.names_nothing_new(part):
            return True
        is_permission = _CONSENT.search(part) is not None and _ITS_OWN_WAY.search(part) is not None
        return is_permission and self._person.trust_of(part) != Trust.USER


def fit_running_summary(text: str, *, turns: Sequence[TranscriptTurn], earlier: str, embed: Embed | None = None) -> str:
    """A model's running summary of `turns` and the earlier summary as it may be kept; empty when none of it may.

    Models get it as the hub's own words, unlike the turns. So sentences that speak to a model are left out, too.
    """
    # Cut before the costly scrubbing.
    text = echo.cut_echo(clean_lines(text[: 2 * LONGEST_SUMMARY]))
    text = redact_text(uploads.scrub(text))[0]
    if len(text) > LONGEST_SUMMARY:
        text = text[: _end(text)].strip()
    summed = SummedTurns(turns, earlier, embed)
    text = summed.supported(text)
    if detection.are_meant_for_model(text):
        text = without(text, detection.are_meant_for_model)
        # Several sentences may say together what none says alone.
        text = "" if detection.are_meant_for_model(text) else text
    text = summed.attributed(text)
    return text if len(text) <= LONGEST_SUMMARY else text[: _end(text)].strip()


def _end(text: str) -> int:
    """Where a text that is too long ends: after its last whole sentence, if it has one."""
    end = max(text.rfind(mark, 0, LONGEST_SUMMARY) + len(mark.strip()) for mark in _SENTENCE_ENDS)
    return end if end > 1 else LONGEST_SUMMARY


def without(text: str, is_refused: Callable[[str], bool]) -> str:
    """The text without refused sentences, or without their refused clauses where ";" separates them."""
    return rewritten(text, lambda part: "" if is_refused(part) else part)


def rewritten(text: str, rewrite: Callable[[str], str]) -> str:
    """The text with `tell` in place of each sentence, or of each of its clauses where ";" separates them."""
    parts = [text[start:end] for start, end in sentences.spans(text)]
    kept = [_with_clauses(sentence, rewrite) for sentence in parts]
    # A text that keeps everything keeps its white space.
    return text if kept == parts else " ".join(filter(None, kept))


def _with_clauses(sentence: str, rewrite: Callable[[str], str]) -> str:
    clauses = _CLAUSE.findall(sentence)
    kept = [rewrite(clause) for clause in clauses]
    if kept == clauses:
        return sentence
    left = "".join(kept)
    if kept[-1]:
        return left
    # Without its last clause the sentence has lost its full stop.
    left = left.strip(_ENDS)
    return f"{left}." if left and left[-1].isalnum() and sentence[-1] == "." else left
