"""Words and colours for states, times and failures; pure, so that tables of cases test them."""

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.dateformat import format as format_date

from memories import conf, exceptions
from memories.models import Fact

# What a state looks like: the names are those of Unfold's labels.
KINDS = {
    "active": "success",
    "committed": "success",
    "pending": "warning",
    "running": "info",
    "done": "success",
    "held": "danger",
    "parked": "danger",
    "failed": "danger",
    "rejected": "danger",
    "trashed": "danger",
    "revoked": "danger",
    "expired": "warning",
    "operator": "primary",
    "user": "info",
    "assistant": "warning",
    "tool": "warning",
}

_MODEL_ERRORS = (
    exceptions.ModelUnavailable,
    exceptions.ModelTimeout,
    exceptions.ModelRateLimited,
    exceptions.ModelRefused,
    exceptions.ModelAnswerInvalid,
    exceptions.ModelAnswerTruncated,
    exceptions.ModelMisconfigured,
)
FAILURES = {error.code: str(error()) for error in _MODEL_ERRORS} | {
    "worker_lost": "The worker ended during each attempt; look at its log before you try again.",
    "lease_lost": exceptions.LeaseLost().detail,
    exceptions.PersonRestricted.code: "The person is under restriction: extraction goes on once it is lifted.",
}
FAR = timedelta(days=30)
# Said after a verb that found one in what was typed.
CUT_OUT = " A secret was cut out of what you typed."


def kind_of(state: str) -> str:
    """The colour of a state; plain when it has none."""
    return KINDS.get(state, "")


def verb_of(name: str) -> str:
    """The name of a verb as it is read: keep_both → Keep both."""
    return name.replace("_", " ").capitalize()


def explain_failure(code: str) -> str:
    """A sentence for the code of a failure; the code itself when we have no better."""
    return FAILURES.get(code, code)


def day_of(moment: datetime) -> str:
    """Like 3 Mar 2027, in the time zone in force."""
    return str(format_date(timezone.localtime(moment), "j M Y"))


def exact(moment: datetime) -> str:
    """Like 3 Mar 2027, 09:12:05 UTC, in the time zone in force."""
    return str(format_date(timezone.localtime(moment), "j M Y, H:i:s T"))


def relative(moment: datetime, *, now: datetime) -> str:
    """Like 5 min ago, or in 3 h; beyond thirty days the date."""
    distance = abs(now - moment)
    if distance >= FAR:
        return day_of(moment)
    if distance < timedelta(minutes=1):
        return "just now" if moment <= now else "in a moment"
    text = _span(distance)
    return f"{text} ago" if moment <= now else f"in {text}"


def why_it_stays(fact: Fact, rules: conf.Rules) -> str:
    """Why a fact never fades; empty when it does fade."""
    if fact.locked:
        return "it is locked"
    if fact.pinned:
        return "it is pinned"
    if fact.binding:
        return "it is an operator's word"
    if rules.half_lives.get(fact.category, rules.half_life_days) is None:
        return f"{fact.category} facts do not fade"
    return ""


def _span(distance: timedelta) -> str:
    minutes = int(distance.total_seconds() // 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        return f"{minutes // 60} h"
    days = minutes // (24 * 60)
    return "1 day" if days == 1 else f"{days} days"
