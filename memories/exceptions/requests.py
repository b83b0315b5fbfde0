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
    """The hub could not do this."""

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
    """The texts speak of passwords, keys and tokens too often to be looked through at once; send fewer in a request."""

    code = "too_many_secrets"
    status = 413


class NotFound(MemoryHubError):
    """There is no such object."""

    code = "not_found"
    status = 404


class KeyBound(MemoryHubError):
    """This key is for one person or one agent alone: name that one, or leave the id out."""

    code = "key_bound"
    status = 403


class Conflict(MemoryHubError):
    """The object's present state does not allow this."""

    code = "conflict"
    status = 409


class OperatorWord(Conflict):
    """An operator corrected, pinned or locked this: only an operator can change it."""

    code = "operator_word"


class FactLocked(Conflict):
    """The fact is locked: no key changes it until the lock is lifted."""

    code = "locked"


class ExternalIdReused(Conflict):
    """The session already has a turn with this external_id and other content; use a new external_id."""

    code = "external_id_reused"


class DuplicateFact(Conflict):
    """The person already has a fact with this text."""

    code = "duplicate"

    def __init__(self, detail: str = "", *, fact_id: UUID | None = None) -> None:
        super().__init__(detail)
        self.fact_id = fact_id


class ReviewNeeded(Conflict):
    """Only an operator can let this be served: state it as a new fact, where it waits for one, or say it otherwise."""

    code = "review_needed"


class ConfirmationNeeded(Conflict):
    """Everybody would be served this text, and it has flags: make the fact private before you give it such a text."""

    def __init__(self, detail: str = "", *, flags: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.flags = tuple(flags)


class RefusedBefore(Conflict):
    """An operator turned this down before: what an agent or a tool states again is not asked about again."""

    code = "refused"


class CapacityReached(Conflict):
    """The person has as many active facts as the tenant allows; forget some, or raise the capacity."""

    code = "capacity"


class IdempotencyKeyBusy(Conflict):
    """The first request with this Idempotency-Key is still being worked on; send it again a little later."""

    code = "idempotency_key_busy"


class ExportNotReady(Conflict):
    """The export is not ready: its case has to be checked, started and carried out. Ask again a little later."""

    code = "not_ready"


class ExportGone(MemoryHubError):
    """The export was downloaded, which can be done once, or has expired. Open another case to have it made again."""

    code = "export_gone"
    status = 410


class PreconditionFailed(MemoryHubError):
    """The object has changed since the version named in If-Match; read it again."""

    code = "version_mismatch"
    status = 412


class MessageTooLarge(MemoryHubError):
    """A message may be at most 1 MB."""

    code = "too_large"
    status = 413


class IdempotencyKeyReused(MemoryHubError):
    """This Idempotency-Key came with another request before; use a new one for each request."""

    code = "idempotency_key_reused"
    status = 422


class PersonRestricted(MemoryHubError):
    """This person is restricted while a privacy case is open: nothing is stored or told."""

    code = "restricted"
    status = 423


class Erased(MemoryHubError):
    """What this is about was erased on request and is not taken again."""

    code = "erased"
    status = 410


class LeaseLost(MemoryHubError):
    """The claim on this batch has passed to somebody else; the result is thrown away."""

    code = "lease_lost"
