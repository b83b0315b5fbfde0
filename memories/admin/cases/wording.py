"""Labels and colours of privacy cases: days left, and the meaning of each type, step and policy."""

from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.utils.text import capfirst
from django.utils.timezone import localdate
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories.admin.site.naming import many_of
from memories.admin.site.wording import explain_failure
from memories.models import CLOSED, CaseState, CaseType, PrivacyCase, ReturnPolicy
from memories.privacy import receipt_page
from memories.privacy.casework import workflow
from memories.privacy.casework.workflow import Level
from memories.privacy.exports.profiles import SECTIONS

_COLOURS = {Level.OK: "", Level.SOON: "warning", Level.URGENT: "danger", Level.OVERDUE: "danger"}
_ICONS = {Level.OK: "event", Level.SOON: "hourglass_bottom", Level.URGENT: "alarm", Level.OVERDUE: "error"}

STATE_COLOURS = {
    CaseState.RECEIVED.value: "",
    CaseState.VERIFIED.value: "",
    CaseState.SCOPED.value: "",
    CaseState.APPROVED.value: "info",
    CaseState.RUNNING.value: "info",
    CaseState.VERIFYING.value: "info",
    CaseState.COMPLETED.value: "success",
    CaseState.REFUSED.value: "",
    CaseState.ON_HOLD.value: "warning",
    CaseState.FAILED.value: "danger",
}
TYPE_ICONS = {
    CaseType.ERASURE.value: "delete_forever",
    CaseType.ACCESS.value: "folder_shared",
    CaseType.PORTABILITY.value: "ios_share",
    CaseType.RECTIFICATION.value: "edit_note",
    CaseType.RESTRICTION.value: "front_hand",
}
TYPES_SAY = {
    CaseType.ERASURE.value: gettext_lazy(
        "The hub deletes all data of the end user, verifies the deletion and issues a receipt. This cannot be undone. "
        "From the identity check on, nothing is stored or served."
    ),
    CaseType.ACCESS.value: gettext_lazy(
        "The end user gets a file with all their data: what they said, what was inferred, and the sources."
    ),
    CaseType.PORTABILITY.value: gettext_lazy(
        "The end user gets a file with the data that they provided, to take elsewhere. Inferred data is not included."
    ),
    CaseType.RECTIFICATION.value: gettext_lazy(
        "An operator who can edit memories corrects the data. The case records that it was done."
    ),
    CaseType.RESTRICTION.value: gettext_lazy(
        "Stored data stays. From the identity check until the case ends, nothing new is stored and nothing is served."
    ),
}
POLICIES_SAY = {
    ReturnPolicy.REFUSE.value: gettext_lazy(
        "Refuse: requests for this id get an error. For end users who must not be remembered again."
    ),
    ReturnPolicy.FLAG.value: gettext_lazy(
        "Allow as a new person and flag to staff: nothing comes back, and operators see that this id was erased before."
    ),
    ReturnPolicy.ALLOW_NEW.value: gettext_lazy(
        "Allow as a new person: nothing comes back, and staff are not notified. For ids that are reassigned."
    ),
}
# Names of stores: those of the receipt, and what stands on pages alone.
STORES = {
    **receipt_page.STORES,
    "memories.EndpointState": gettext_lazy("State of the model's endpoint"),
    "memories.LoggedContext.others": gettext_lazy("Contexts of others that had the end user's memories"),
    "memories.SentBlock.others": gettext_lazy("Blocks sent for others that had the end user's memories"),
}
# Step of a run → what it does.
WORK_SAYS = {
    "begin": gettext_lazy("The hub is stopping work in progress for the end user."),
    "note": gettext_lazy("The hub is recording what to search for and writing the erasure to the ledger."),
    "stores": gettext_lazy("The hub is deleting the rows, store by store."),
    "people": gettext_lazy("The hub is deleting the end user."),
    "vacuum": gettext_lazy("The hub is vacuuming the tables."),
    "verify": gettext_lazy("The hub is searching all tables, files and answers."),
}
FAILURES = {
    "erased": gettext_lazy("The end user was erased or is being erased, so there is nothing to export."),
    "files": gettext_lazy("A file could not be written or read. Check the disk and the log."),
    "database": gettext_lazy("The database returned an error or was unreachable. Check its log."),
    "found": gettext_lazy("The verification found remaining data of the end user. The places are listed below."),
}


@dataclass(frozen=True)
class DaysLeft:
    """How long until a case is due, in calendar days of the current time zone; text and colour both show how urgent it
    is."""

    level: Level
    text: str

    @property
    def colour(self) -> str:
        return _COLOURS[self.level]

    @property
    def icon(self) -> str:
        return _ICONS[self.level]


def days_left(case: PrivacyCase, *, now: datetime) -> DaysLeft | None:
    """None for a case that is closed and of which nothing waits to be handed over."""
    if case.state in CLOSED and not case.to_hand_over:
        return None
    days, level = (localdate(case.due_at) - localdate(now)).days, workflow.level_of(case, now)
    if level == Level.OVERDUE:
        text = ngettext("overdue by %(count)d day", "overdue by %(count)d days", -days) % {"count": -days}
        return DaysLeft(level, text if days else _("overdue since today"))
    text = ngettext("%(count)d day left", "%(count)d days left", days) % {"count": days}
    return DaysLeft(level, text if days else _("due today"))


def store_name(label: str) -> str:
    """The label of a store or of a place in it, as the registry names them, or of a section of exports."""
    if label in STORES:
        return str(STORES[label])
    label = next((section.store for section in SECTIONS if section.name == label), label)
    app, dot, model = label.partition(".")
    try:
        return str(capfirst(many_of(apps.get_model(app, model)))) if dot else label
    except LookupError:
        return label


def why_other_count(case: PrivacyCase, store: str, counted: int, done: int) -> str:
    """Why other rows of a store were deleted, or are in the file, than were counted; "" if they are as many."""
    erases, top = case.type == CaseType.ERASURE, {section.store for section in SECTIONS}
    inner = {part.store for section in SECTIONS for part in section.inside_in(case.type)}
    # The first that holds.
    reasons = (
        (counted == done, ""),
        (erases and store == PrivacyCase._meta.label, _("Cases stay as codes and times. Their texts are deleted.")),
        (done > counted, _("Added after the count.")),
        (erases, _("Gone before the erasure, or kept without content.")),
        (store in inner, _("In the file as parts of other rows.")),
        (case.type == CaseType.PORTABILITY, _("Not provided by the end user, so not part of this file.")),
        (store not in top, _("Technical records without information for the end user.")),
        (True, _("Gone after the count.")),
    )
    return next(reason for holds, reason in reasons if holds)


def why_failed(case: PrivacyCase) -> str:
    """A sentence for the code of a failure; the code itself where there is none."""
    return str(FAILURES[case.failure]) if case.failure in FAILURES else explain_failure(case.failure)
