"""Words and colours of states, times, reasons and failures. Pure."""

import math
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from memories import conf, exceptions
from memories.conf.kinds import Number, NumberKind, shown
from memories.models import Author, Fact, Turn
from memories.models.conversations.conversations import AUTHOR_OF_ROLE
from memories.queue.leases import WORKER_LOST
from memories.queue.retry_policy import INTERNAL_ERROR
from memories.queue.spending import CAPPED
from memories.verbs import VERBS

# State → the name of its colour in Unfold's labels.
KINDS = {
    "active": "success",
    "committed": "success",
    "pending": "warning",
    "running": "info",
    "done": "success",
    "delivered": "success",
    "held": "danger",
    "parked": "danger",
    "failed": "danger",
    "waiting": "warning",
    "applied": "success",
    "refused": "danger",
    "declined": "danger",
    "undone": "info",
    "restored": "info",
    "rejected": "danger",
    "trashed": "danger",
    "revoked": "danger",
    "expired": "warning",
    "expiring": "warning",
    "operator": "primary",
    "user": "info",
    "assistant": "warning",
    "tool": "warning",
}

# Code → message, or an error class whose instance is the message.
FAILURES: dict[str, Any] = {error.code: error for error in exceptions.ModelError.__subclasses__()} | {
    exceptions.LeaseLost.code: exceptions.LeaseLost,
    INTERNAL_ERROR: gettext_lazy("The hub itself failed. The worker's log names the place."),
    WORKER_LOST: gettext_lazy("The worker stopped during each attempt. Check its log before you try again."),
    CAPPED: gettext_lazy(
        "The tenant's daily cap is reached. It goes on when the tenant's day ends or the cap is raised."
    ),
    exceptions.PersonRestricted.code: gettext_lazy(
        "The end user is restricted. Extraction continues when the restriction is lifted."
    ),
}
# States of queued work.
WORK = {
    "idle": gettext_lazy("Idle"),
    "pending": gettext_lazy("Pending"),
    "running": gettext_lazy("Running"),
    "parked": gettext_lazy("Parked"),
    "off": gettext_lazy("Off"),
}
KEY_STATES = {
    "active": gettext_lazy("Active"),
    "expiring": gettext_lazy("Expires soon"),
    "expired": gettext_lazy("Expired"),
    "revoked": gettext_lazy("Revoked"),
}
# Reasons that jobs store with a revision. Reasons that people gave are shown as written.
REASONS = {
    "It did not come up again.": gettext_lazy("It was not mentioned again."),
    "It was over.": gettext_lazy("It expired."),
    "Found in several episodes.": gettext_lazy("Found in several episodes."),
    "It said what was corrected.": gettext_lazy("It said what was corrected."),
}
# Appended to the message of a verb whose input contained a secret.
CUT_OUT = gettext_lazy(" A secret was removed from your input.")


def whose_words(turn: Turn) -> list[tuple[str, str]]:
    """Labels that say whose words a turn holds where its role does not, each with what it means."""
    if turn.author and turn.author != AUTHOR_OF_ROLE.get(turn.role, Author.APPLICATION):
        return [(turn.get_author_display(), _("It came in this role, but these are not its words."))]
    found = []
    if turn.own is not None:
        found.append((_("Parts"), _("Only a part of it is the author's own. The rest is shown paler and not read.")))
    if turn.is_doubtful:
        found.append((_("Doubtful"), _("It may not be the person's own word. What is taken from it waits for review.")))
    return found


def kind_of(state: str) -> str:
    """The colour of a state; empty if it has none."""
    return KINDS.get(state, "")


def verb_of(name: str) -> str:
    """What pages call a verb; one that is gone by its name: keep_both → Keep both."""
    return str(VERBS[name].label) if name in VERBS else name.replace("_", " ").capitalize()


def explain_failure(code: str) -> str:
    """The message of a failure; for an unknown code the code itself."""
    message = FAILURES.get(code, code)
    return str(message() if isinstance(message, type) else message)


def reason_of(text: str) -> str:
    """Why something was changed, translated if a job gave the reason."""
    return str(REASONS.get(text, text))


def day_of(moment: datetime) -> str:
    """Like 3 Mar 2027, in the current time zone."""
    # Translators: Django's date format of a day with its year.
    return str(format_date(timezone.localtime(moment), pgettext("date format", "j M Y")))


def day_month(day: date) -> str:
    """Like 3 Mar."""
    # Translators: Django's date format of a day without its year.
    return str(format_date(day, pgettext("date format", "j M")))


def exact(moment: datetime) -> str:
    """Like 3 Mar 2027, 09:12:05 UTC, in the current time zone."""
    # Translators: Django's date format of a moment with its zone.
    return str(format_date(timezone.localtime(moment), pgettext("date format", "j M Y, H:i:s T")))


def relative(moment: datetime, *, now: datetime) -> str:
    """Like 5 min ago, or in 3 h; from thirty days on the date."""
    distance = abs(now - moment)
    if distance >= timedelta(days=30):
        return day_of(moment)
    if distance < timedelta(minutes=1):
        return _("just now") if moment <= now else _("in a moment")
    return _ago(distance) if moment <= now else _ahead(distance)


def span_of(number: Number) -> str:
    """The range of a number in the rules, like `10–5,000 facts, 0: no bound`."""
    if number.kind == NumberKind.SWITCH:
        return _("on or off")
    ends = f"{shown(number.lowest)}–{shown(number.highest)} {_(number.unit)}".rstrip()
    if number.kind == NumberKind.HALF_LIVES:
        return _("%(span)s, or never") % {"span": ends}
    return _("%(span)s, 0: %(zero)s") % {"span": ends, "zero": _(number.zero)} if number.zero else ends


def why_it_stays(fact: Fact, rules: conf.Rules) -> str:
    """Why a fact never fades; empty if it fades."""
    if fact.locked:
        return _("it is locked")
    if fact.pinned:
        return _("it is pinned")
    if fact.binding:
        return _("the person stated it") if fact.is_persons_word else _("an operator confirmed it")
    if rules.half_lives.get(fact.category, rules.half_life_days) is None:
        return _("%(category)s facts do not fade") % {"category": fact.get_category_display().lower()}
    return ""


def _ago(distance: timedelta) -> str:
    minutes = int(distance.total_seconds() // 60)
    if minutes < 60:
        return _("%(count)d min ago") % {"count": minutes}
    if minutes < 24 * 60:
        return _("%(count)d h ago") % {"count": minutes // 60}
    return ngettext("%(count)d day ago", "%(count)d days ago", distance.days) % {"count": distance.days}


def _ahead(distance: timedelta) -> str:
    # Rounded up: three days that were given a second ago are three days.
    minutes = math.ceil(distance.total_seconds() / 60)
    if minutes < 60:
        return _("in %(count)d min") % {"count": minutes}
    if minutes < 24 * 60:
        return _("in %(count)d h") % {"count": minutes // 60}
    return ngettext("in %(count)d day", "in %(count)d days", minutes // (24 * 60)) % {"count": minutes // (24 * 60)}
