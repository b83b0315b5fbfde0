"""Labels of the codes in a run's counts: outcomes of candidates, and reasons of refusals."""

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

OUTCOMES: dict[str, Promise] = {
    "stored": _("Stored"),
    "suggested": _("Suggested by rules, pending review"),
    "reinforced": _("Already known, mentioned again"),
    "confirmed": _("Mentioned again"),
    "quarantined": _("Pending review"),
    "conflicts": _("Conflicting, pending review"),
    "refined": _("Refined"),
    "superseded": _("Replaced an existing fact"),
    "beside": _("Beside the end user's own fact, which other agents are still told"),
    "older": _("Older than an existing fact"),
    "repeated": _("Duplicate in one answer"),
    "outranked": _("Skipped: the existing fact is more trusted"),
    "operator_word": _("Skipped: an operator stated otherwise"),
    "archived": _("Archived: over capacity"),
    "named_reinforced": _("Known facts mentioned again"),
    "named_removed": _("Known facts no longer true"),
    "removal_conflicts": _("Removals pending review"),
    "related": _("Related to another fact"),
    "profile_sections": _("Profile sections written"),
    "profile_held": _("Sections pending review"),
    "profile_proposed_before": _("Sections proposed before"),
    "profile_too_long": _("Sections that were too long"),
    "profile_changed_meanwhile": _("Sections changed by somebody else"),
    "profile_older": _("Sections that rest on something newer"),
    "operator_section": _("Skipped: sections that an operator wrote"),
    "shortened": _("Long messages that the model was not shown whole"),
    "left_out": _("Characters of them that it was not shown"),
}
REFUSALS: dict[str, Promise] = {
    "unread_request": _("A request to remember that the rules could not read"),
    "no_content": _("Empty"),
    "content_too_long": _("Too long"),
    "low_confidence": _("Confidence too low"),
    "low_importance": _("Not important enough"),
    "not_about_user": _("Not about the end user"),
    "transient": _("Only temporarily true"),
    "upload": _("About an uploaded file"),
    "secret": _("Contains a secret"),
    "example_echo": _("Copied from the prompt's examples"),
    "repeated": _("Duplicate in one answer"),
    "too_many": _("Over the limit of one run"),
    "malformed": _("Malformed"),
    "fact_changed": _("About a fact that was changed in the meantime"),
    "said_since": _("A removal of a fact that was mentioned again since"),
    "unknown_fact": _("About an unknown fact"),
    "malformed_relation": _("Malformed relation"),
    "unknown_relation": _("Relation to an unknown fact"),
    "relation_not_stored": _("Relation of facts that were not stored"),
    "malformed_triple": _("Malformed triple"),
    "unsupported_triple": _("Triple in words that the fact does not have"),
    "flagged_triple": _("Triple that speaks to a model"),
    "too_many_triples": _("Triples over the limit of a fact"),
    "no_reason": _("Removal without a reason"),
    "weak_evidence": _("Insufficient evidence"),
    "replacement_not_stored": _("Replacement was not stored"),
    "restated": _("Removed by the answer that states it"),
    "dropped_after_refusal": _("Rejected by an operator before"),
    "content_policy": _("Forbidden by the content policy"),
    "profile_value": _("No value of the profile’s field; kept as an ordinary fact"),
}


def label_of(code: str) -> str:
    """The label of a count; for an unknown code the code itself."""
    if code.startswith("bad_"):  # and the name of the malformed field
        return gettext("Malformed (%(code)s)") % {"code": code}
    return str({**REFUSALS, **OUTCOMES}.get(code) or code)
