"""What is wrong with a request, or with the state that it met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from django.utils.translation import gettext


@dataclass(frozen=True)
class Fault:
    """One fault of an input: where (JSON pointer or parameter name), which, and what to do."""

    pointer: str
    code: str
    detail: str


class MemoryHubError(Exception):
    """The request failed."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, faults: Sequence[Fault] = ()) -> None:
        # In the language in force: English for the API and commands.
        self.detail = detail or gettext(" ".join((type(self).__doc__ or "").split()))
        self.faults = tuple(faults)
        super().__init__(self.detail)


class InvalidInput(MemoryHubError):
    """The request is not valid; see the listed errors."""

    code = "invalid"
    status = 400

    @classmethod
    def at(cls, pointer: str, detail: str, *, code: str = "invalid") -> "InvalidInput":
        """One fault at one place."""
        return cls(faults=[Fault(pointer=pointer, code=code, detail=detail)])


class TooManySecrets(MemoryHubError):
    """The texts mention passwords, keys and tokens too often to be checked in one request. Send fewer texts per
    request."""

    code = "too_many_secrets"
    status = 413


class RequestTooCostly(MemoryHubError):
    """The answer to this request would be too large, or take too long. Ask for less in one request."""

    code = "too_costly"
    status = 413


class HubBusy(MemoryHubError):
    """The hub is busy: this request would wait too long. Try again after the seconds of Retry-After."""

    code = "busy"
    status = 503
    retryable = True

    def __init__(self, seconds: int = 1) -> None:
        super().__init__()
        self.seconds = seconds


class NotFound(MemoryHubError):
    """The object does not exist."""

    code = "not_found"
    status = 404


class KeyBound(MemoryHubError):
    """This key is limited to one person or one agent. Use that id, or leave the id out."""

    code = "key_bound"
    status = 403


class Conflict(MemoryHubError):
    """The current state of the object does not allow this."""

    code = "conflict"
    status = 409


class ModelUntested(Conflict):
    """The endpoint of the model could not be tested, or did not answer."""

    # `code` is that of the failed call.
    def __init__(self, detail: str = "", *, code: str = Conflict.code) -> None:
        super().__init__(detail)
        self.code = code  # type: ignore[misc]  # of each one its own


class PreviewRefused(Conflict):
    """Extraction cannot be tried here."""

    code = "preview_refused"


class NoPrice(Conflict):
    """Nobody said what the model costs, so its cost cannot be bounded. Set its prices, or leave `max_cost` out."""

    code = "no_price"


class OperatorWord(Conflict):
    """An operator corrected, pinned or locked this. Only an operator can change it."""

    code = "operator_word"


class FactLocked(Conflict):
    """The fact is locked. No key can change it until an operator unlocks it."""

    code = "locked"


class TripleOfFact(Conflict):
    """This triple follows from a fact and changes with it. Change, replace or delete that fact."""

    code = "of_fact"


class ExternalIdReused(Conflict):
    """The session already has a turn with this external_id and other content; use a new external_id."""

    code = "external_id_reused"


class AlreadyRedacted(Conflict):
    """This was deleted before. The turn does not say it any more."""

    code = "already_redacted"


class DuplicateFact(Conflict):
    """The person already has a fact with this text."""

    code = "duplicate"

    def __init__(self, detail: str = "", *, fact_id: UUID | None = None) -> None:
        super().__init__(detail)
        self.fact_id = fact_id


class ReviewNeeded(Conflict):
    """Only an operator can let this be served: state it as a new fact, where it waits for one, or say it otherwise."""

    code = "review_needed"


class BeyondTrust(ReviewNeeded):
    """This key writes as an agent and cannot end what the user said or what is served. Nothing was changed, and nothing
    waits for review: a key that writes as the user can do this, or an operator in the admin."""


class ConfirmationNeeded(Conflict):
    """Everybody would be served this text, and it has flags: make the fact private before you give it such a text."""

    def __init__(self, detail: str = "", *, flags: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.flags = tuple(flags)


class RefusedBefore(Conflict):
    """An operator turned this down before: what an agent or a tool states again is not asked about again."""

    code = "refused"


class ContentForbidden(Conflict):
    """The tenant's content policy does not allow this to be remembered. Nothing was stored."""

    code = "content_forbidden"

    def __init__(self, *, category: str, version: int) -> None:
        super().__init__()
        self.category = category
        self.members = {"category": category, "policy_version": version}


class CapacityReached(Conflict):
    """The person has reached the tenant's limit of active facts. Forget some, or raise the limit."""

    code = "capacity"


class FileNotFound(NotFound):
    """There is no file at this path."""

    code = "file_not_found"


class TextNotFound(NotFound):
    """The file does not contain this text."""

    code = "text_not_found"

    def __init__(self, detail: str = "", *, newline_only: bool = False, without_newline: int = 0) -> None:
        if newline_only and not detail:
            detail = gettext("The text ends with a newline and the file does not: leave out the newline at its end.")
        super().__init__(detail)
        # `newline_only`: but for its last newline it is the end of the file, and then stands there so many times.
        self.members = {
            "occurrences": 0,
            "newline_only": newline_only,
            "occurrences_without_newline": without_newline,
        }


class TextNotUnique(Conflict):
    """The file contains this text more than once. Give more of the text around it, or replace all of them."""

    code = "text_not_unique"

    def __init__(self, detail: str = "", *, occurrences: int = 0) -> None:
        super().__init__(detail)
        self.members = {"occurrences": occurrences}


class OffsetBeyondEnd(InvalidInput):
    """The file has fewer lines than the offset."""

    code = "offset_beyond_end"

    def __init__(self, *, offset: int, total_lines: int) -> None:
        detail = gettext("Line offset %(offset)d exceeds the file's length (%(lines)d lines).") % {
            "offset": offset, "lines": total_lines,
        }  # fmt: skip
        super().__init__(detail, faults=[Fault("offset", self.code, detail)])
        self.members = {"total_lines": total_lines}


class FileIsBinary(Conflict):
    """The file is no text, so that no text in it can be replaced. Write it anew."""

    code = "binary_file"


class FileIsFolder(Conflict):
    """There are files below this path: it is a folder."""

    code = "is_directory"


class FolderIsFile(Conflict):
    """A part of this path is a file, and a file has no files in it."""

    code = "not_a_directory"


class TooManyFiles(Conflict):
    """The person has as many files as the tenant allows. Delete some, or have the limit raised."""

    code = "too_many_files"


class NotAMember(Conflict):
    """This person is no member of the group. Add them to it first."""

    code = "not_a_member"


class MayNotWrite(Conflict):
    """This member of the group may only read. Let them write first."""

    code = "read_only_member"


class TooManyEntries(Conflict):
    """The person has as many diary entries as the tenant allows. Delete some, or have the limit raised."""

    code = "too_many_entries"


class TooManyTrajectories(Conflict):
    """The person has as many trajectories as the tenant allows. Delete some, or have the limit raised."""

    code = "too_many_trajectories"


class TooManySteps(Conflict):
    """The trajectory has as many steps as the tenant allows. Begin another one, or have the limit raised."""

    code = "too_many_steps"


class FileTooLarge(MemoryHubError):
    """The file is larger than the tenant allows."""

    code = "file_too_large"
    status = 413


class IdempotencyKeyBusy(Conflict):
    """The first request with this Idempotency-Key is still being processed. Try again later."""

    code = "idempotency_key_busy"


class ExportNotReady(Conflict):
    """The export is not ready. Its case must be verified, started and completed first. Try again later."""

    code = "not_ready"


class ExportGone(MemoryHubError):
    """The export has expired or was already downloaded; it can be downloaded once. Open another case to create it
    again."""

    code = "export_gone"
    status = 410


class PreconditionFailed(MemoryHubError):
    """The object has changed since the version in If-Match. Read it again."""

    code = "version_mismatch"
    status = 412


class MessageTooLarge(MemoryHubError):
    """A message can have at most 1 MB."""

    code = "too_large"
    status = 413


class IdempotencyKeyReused(MemoryHubError):
    """This Idempotency-Key was already used with a different request. Use a new one for each request."""

    code = "idempotency_key_reused"
    status = 422


class PersonRestricted(MemoryHubError):
    """This person is restricted while a privacy case is open. Nothing is stored or served."""

    code = "restricted"
    status = 423


class Erased(MemoryHubError):
    """This person was erased; data for this id is refused."""

    code = "erased"
    status = 410


class LeaseLost(MemoryHubError):
    """Another worker has taken over this batch. The result is discarded."""

    code = "lease_lost"
