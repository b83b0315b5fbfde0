"""Labels and colours of privacy cases: days left, and the meaning of each type, step and policy."""

from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from memories.admin.site.naming import many_of
from memories.admin.site.wording import explain_failure
from memories.models import CLOSED, CaseState, CaseType, PrivacyCase, ReturnPolicy
from memories.privacy.casework import workflow
from memories.privacy.casework.workflow import Level

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
        "All that is kept of the person is deleted, searched for once more, and a receipt is issued. It cannot be "
        "undone. From the identity check on nothing is stored or told of them."
    ),
    CaseType.ACCESS.value: gettext_lazy(
        "The person gets a file with all that is kept of them: what they said, what was inferred, where it came from."
    ),
    CaseType.PORTABILITY.value: gettext_lazy(
        "The person gets a file with what they provided themselves, to take elsewhere: nothing that was inferred."
    ),
    CaseType.RECTIFICATION.value: gettext_lazy(
        "Somebody who edits memories sets right what is wrong; the case records that it was done."
    ),
    CaseType.RESTRICTION.value: gettext_lazy(
        "What is kept stays, but nothing new is stored or told, from the identity check until the case ends."
    ),
}
POLICIES_SAY = {
    ReturnPolicy.REFUSE.value: gettext_lazy(
        "Refuse: whoever comes under this id is turned away with an error. For people who must not be known again."
    ),
    ReturnPolicy.FLAG.value: gettext_lazy(
        "Take as a new person, and say so: nothing of before comes back, and operators see that somebody of this id "
        "was erased."
    ),
    ReturnPolicy.ALLOW_NEW.value: gettext_lazy(
        "Take as a new person: nothing of before comes back, and nobody is told. For ids that are given out again."
    ),
}
# Stores that are not a model of ours, or only a column of one.
STORES = {
    "files": gettext_lazy("Files"),
    "sessions.Session": gettext_lazy("Operators' browser sessions"),
    "django_q.OrmQ": gettext_lazy("Queued work"),
    "django_q.Task": gettext_lazy("Results of finished work"),
    "admin.LogEntry": gettext_lazy("The admin's own log"),
    "axes.AccessAttempt": gettext_lazy("Failed sign-ins"),
    "memories.EndpointState": gettext_lazy("State of the model's endpoint"),
    "memories.Fact.allowed_users": gettext_lazy("Other people's facts that name the person as a reader"),
    "cache": gettext_lazy("Caches"),
}
# Step of a run → what it does.
WORK_SAYS = {
    "begin": gettext_lazy("Work that is under way for the person is stopped."),
    "note": gettext_lazy("What to search for is noted, and the erasure is written into the ledger."),
    "stores": gettext_lazy("The rows are deleted, store by store."),
    "people": gettext_lazy("The person is deleted."),
    "vacuum": gettext_lazy("The tables are cleaned up."),
    "verify": gettext_lazy("All tables, files and answers are searched."),
}
FAILURES = {
    "erased": gettext_lazy("The person was erased, or is being erased, so there is nothing to give out."),
    "files": gettext_lazy("A file could not be written or read: look at the disk and at the log."),
    "database": gettext_lazy("The database refused or was away: look at its log."),
    "found": gettext_lazy("The search after the erasure found something of the person. The places are below."),
}


@dataclass(frozen=True)
class DaysLeft:
    """How long until a case is due, in whole days; text and colour both show how urgent it is."""

    days: int
    level: Level
    text: str

    @property
    def colour(self) -> str:
        return _COLOURS[self.level]

    @property
    def icon(self) -> str:
        return _ICONS[self.level]


def days_left(case: PrivacyCase, *, now: datetime) -> DaysLeft | None:
    """None for a case that is closed."""
    if case.state in CLOSED:
        return None
    days, level = workflow.days_left(case, now), workflow.level_of(case, now)
    if level == Level.OVERDUE:
        late = -days - 1
        text = ngettext("overdue by %(count)d day", "overdue by %(count)d days", late) % {"count": late}
        return DaysLeft(days, level, text if late else _("overdue since today"))
    text = ngettext("%(count)d day left", "%(count)d days left", days) % {"count": days}
    return DaysLeft(days, level, text if days else _("less than a day left"))


def store_name(label: str) -> str:
    """The label of a store, or of a place in it, that the registry names like memories.Turn."""
    if label in STORES:
        return str(STORES[label])
    app, dot, model = label.partition(".")
    try:
        return str(capfirst(many_of(apps.get_model(app, model)))) if dot else label
    except LookupError:
        return label


def why_failed(case: PrivacyCase) -> str:
    """A sentence for the code of a failure; the code itself where there is none."""
    return str(FAILURES[case.failure]) if case.failure in FAILURES else explain_failure(case.failure)
