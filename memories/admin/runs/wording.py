"""Labels of the codes in a run's counts: outcomes of candidates, and reasons of refusals."""

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

OUTCOMES: dict[str, Promise] = {
    "stored": _("Stored"),
    "suggested": _("Suggested by rules, waiting for review"),
    "reinforced": _("Known already, said again"),
    "confirmed": _("Said again"),
    "quarantined": _("Waiting for review"),
    "conflicts": _("In conflict, waiting for review"),
    "refined": _("Worded more exactly"),
    "superseded": _("Replaced what was known"),
    "older": _("Said before what is known since"),
    "repeated": _("Said twice in one answer"),
    "outranked": _("Left: what is known is of more trust"),
    "operator_word": _("Left: an operator has said it otherwise"),
    "archived": _("Archived, since there were too many"),
    "named_reinforced": _("Known facts said again"),
    "named_removed": _("Known facts no longer true"),
    "removal_conflicts": _("Removals that wait for review"),
    "profile_sections": _("Sections of the profile written"),
    "profile_held": _("Sections that wait for review"),
    "profile_proposed_before": _("Sections proposed before"),
    "profile_too_long": _("Sections that were too long"),
    "profile_changed_meanwhile": _("Sections changed by somebody meanwhile"),
    "operator_section": _("Left: sections that an operator wrote"),
}
REFUSALS: dict[str, Promise] = {
    "no_content": _("Without content"),
    "content_too_long": _("Too long"),
    "low_confidence": _("Too unsure"),
    "low_importance": _("Not important enough"),
    "not_about_user": _("Not about the person"),
    "transient": _("True for the moment alone"),
    "upload": _("About an uploaded file"),
    "secret": _("Holds a secret"),
    "example_echo": _("An example of the prompt"),
    "repeated": _("Said twice in one answer"),
    "too_many": _("More than one run may store"),
    "malformed": _("Malformed"),
    "fact_changed": _("About a fact that was changed meanwhile"),
    "said_since": _("A removal of a fact that was said again since"),
    "unknown_fact": _("About a fact that was not shown"),
    "no_reason": _("A removal without a reason"),
    "weak_evidence": _("Without evidence that counts"),
    "replacement_not_stored": _("Its replacement was not stored"),
    "dropped_after_refusal": _("Refused by an operator before"),
}


def label_of(code: str) -> str:
    """The label of a count; for an unknown code the code itself."""
    if code.startswith("bad_"):  # and the name of the malformed field
        return gettext("Malformed (%(code)s)") % {"code": code}
    return str({**REFUSALS, **OUTCOMES}.get(code) or code)
