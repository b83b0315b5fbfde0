"""The verbs of the audit trail and of revisions as they are read; wording.verb_of() looks them up in the catalogue."""

from django.utils.translation import gettext_noop as _

VERBS = (
    _("Add"), _("Approve"), _("Approve items"), _("Archive"), _("Break glass"), _("Change external id"), _("Change id"),
    _("Confirm"), _("Correct"), _("Create"), _("Decay"), _("Delete"), _("Edit"), _("Expire"), _("Export"), _("Extract"),
    _("Fade"), _("Feedback"), _("Forget"), _("Forget filter"), _("Import"), _("Keep both"), _("Lock"), _("Merge"),
    _("Offboard"), _("Pin"), _("Publish"), _("Purge"), _("Reconsider"), _("Refine"), _("Reinforce"), _("Reject"),
    _("Reject items"), _("Release"), _("Remove"), _("Restore"), _("Retain"), _("Retry"), _("Revoke"), _("Roll back"),
    _("Rotate"), _("Run"), _("Save filter"), _("Seed"), _("Set password"), _("Set preferences"), _("Settle"),
    _("Split"), _("Supersede"), _("Take"), _("Undo"), _("Undo items"), _("Undo merge"), _("Undo roll back"),
    _("Unlock"), _("Unpin"), _("Update"), _("Upkeep"), _("Withdraw"), _("Write"),
)  # fmt: skip
