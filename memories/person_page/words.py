"""What the page says when something was done, could not be done, or the page is closed: by code, in plain words."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

SAID: Mapping[str, Promise] = {
    "corrected": _("Corrected. Your words count from now on, and no program changes them."),
    "forgotten": _("Forgotten. It is not used any more, and it is not learned again by itself."),
    "unchanged": _("Nothing was changed: this is what is remembered already."),
    "restored": _("It is remembered again."),
    "conversation": _("The conversation is deleted, with what was learned from it alone."),
    "paused": _("Your memory is paused. Nothing new is remembered, and nothing is used."),
    "resumed": _("Your memory is on again."),
    "export": _("A copy of your data is being made. It takes a few minutes: look here again."),
    "asked": _("Your request has arrived. Staff will check it and answer within a month."),
}
FAILED: Mapping[str, Promise] = {
    "operator_word": _("Staff of the application stated this, or keep it. Ask them to change it."),
    "locked": _("Staff of the application keep this as it is. Ask them to change it."),
    "duplicate": _("This is remembered already, in these words."),
    "review_needed": _("This reads like instructions to a program, so it cannot be remembered. Say it in other words."),
    "restricted": _("The use of your data is restricted at the moment, so nothing can be changed here."),
    "version_mismatch": _("This has changed since you opened the page. Look at it once more."),
    "content_forbidden": _("The tenant's content policy does not allow this to be remembered. Nothing was stored."),
    "off_by_others": _("The application or its staff switched it off. Ask there to switch it on again."),
    "not_found": _("This is not here any more."),
    "empty_value": _("Enter or choose what is right. To empty it, use “Forget”."),
    "empty": _("Write what is right, in a sentence."),
    "too_long": _("This is too long. Write at most 2,000 characters."),
    "asked_before": _("You have asked for this already, and it is being worked on."),
    "not_ready": _("The copy is not ready yet. Look here again in a few minutes."),
    "not_sure": _("Tick the box first: an erasure cannot be undone."),
    "export_gone": _("This copy was downloaded, or its time is over. You can ask for another one."),
}
SOMETHING = _("This did not work, and nothing was changed. Try again, or open the page from the application once more.")
# Code of an error of the link → heading and text.
CLOSED: Mapping[str, tuple[Promise, Promise]] = {
    "not_found": (
        _("This link does not work"),
        _("It is not complete, or nobody knows it here. Open the page from the application once more."),
    ),
    "link_used": (
        _("This link was already used"),
        _("Each link opens the page once, so that nobody else can use it. Ask the application for a new one."),
    ),
    "link_expired": (
        _("This link was not opened in time"),
        _("Links work for a short time only. Open the page from the application once more."),
    ),
    "link_over": (
        _("This page is closed"),
        _("Its time is over, or something about your account has changed. Open it from the application once more."),
    ),
    "page_off": (
        _("This page is switched off"),
        _("The application does not offer it at the moment. Its staff can tell you what is remembered of you."),
    ),
    "done": (
        _("You have closed the page"),
        _("To see it again, open it from the application."),
    ),
    "no_session": (
        _("Open this page from the application"),
        _("It is closed here, or your browser does not keep its cookie. The application gives you a link."),
    ),
    "foreign": (
        _("Nothing was changed"),
        _("This form did not come from the page that is open now. Go back to the page and try again."),
    ),
    "busy": (
        _("Just a moment"),
        _("This page was asked for very often. Wait a minute and try again."),
    ),
    "method": (
        _("This page cannot be asked for in that way"),
        _("Go back to the page and use its buttons."),
    ),
}
WHO: Mapping[str, Promise] = {
    "user": _("You"),
    "person": _("You"),
    "assistant": _("The assistant"),
    "model": _("A model"),
    "tool": _("A program"),
    "system": _("The application"),
    "application": _("The application"),
    "other": _("Somebody else"),
}
# Who did something, by the kind of the actor, and with what.
SOMEBODY = _("A program")
ACTORS: Mapping[str, Promise] = {
    "person": _("You"),
    "operator": _("Staff of the application"),
    "command": _("Staff of the application"),
    "key": _("The application"),
    "link": _("Whoever had the link"),
}
OBJECTS: Mapping[str, Promise] = {
    "EndUser": _("your record"),
    "PrivacyCase": _("your request"),
    "PrivacyExport": _("the copy of your data"),
}
YES, NO = _("Yes"), _("No")
# Of a fact: who said it.
PERSON_HERE, PERSON, STAFF = _("You said so here."), _("You said so."), _("Staff of the application said so.")
APPLICATION_FOR_PERSON = _("The application says that you said so.")
CONCLUDED = _("Concluded from what you said.")
# Of what the person did not say, by its trust.
SAID_BY: Mapping[str, Promise] = {
    "operator": STAFF,
    "assistant": _("The assistant said so. You did not."),
    "tool": _("The application, or a program that it uses, said so. You did not."),
}
# Who spoke in a turn whose words retention deleted, by the trust of what rests on it.
SPOKE: Mapping[str, Promise] = {
    "user": WHO["user"],
    "assistant": WHO["assistant"],
    "tool": WHO["tool"],
    "operator": WHO["other"],
}
# Who wrote a summary, by the kind of the actor; nobody's name for a program.
WROTE: Mapping[str, Promise] = {
    "operator": _("Staff of the application wrote this."),
    "command": _("Staff of the application wrote this."),
    "key": _("The application wrote this."),
}
