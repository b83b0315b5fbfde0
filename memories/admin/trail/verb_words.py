"""The verbs of the audit trail and of revisions, for the catalogue; wording.verb_of() translates them."""

from django.utils.translation import gettext_noop as _

VERBS = (
    _("Add"), _("Approve"), _("Approve items"), _("Archive"), _("Break glass"), _("Change external id"), _("Change id"),
    _("Change model"),
    _("Clear"), _("Complete"), _("Confirm"), _("Correct"), _("Create"), _("Decay"), _("Delete"), _("Download"),
    _("Edit"), _("Erase"), _("Expire"), _("Export"), _("Extend"), _("Extract"), _("Fade"), _("Fail"), _("Feedback"),
    _("Forget"), _("Forget filter"), _("Hold"), _("Import"), _("Keep both"), _("Link"), _("Link provider"), _("Lock"),
    _("Merge"), _("Off board"), _("Offboard"), _("Open"), _("Pin"), _("Promote"), _("Publish"), _("Purge"),
    _("Put off end"), _("Reconsider"), _("Redact"), _("Refine"), _("Refuse"), _("Reinforce"), _("Reject"),
    _("Reject items"), _("Release"), _("Remove"), _("Remove second factor"), _("Restore"), _("Retain"), _("Retry"),
    _("Retry parked"), _("Revoke"), _("Roll back"), _("Rotate"), _("Run"), _("Save filter"), _("Scope"), _("Seed"),
    _("Set password"), _("Set preferences"), _("Settle"), _("Split"), _("Supersede"), _("Take"), _("Take back"),
    _("Tell"), _("Undo"), _("Undo items"), _("Undo merge"), _("Undo roll back"), _("Unlink provider"), _("Unlock"),
    _("Unpin"), _("Update"), _("Upkeep"), _("Verify"), _("Withdraw"), _("Write"),
)  # fmt: skip
