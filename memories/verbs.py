"""What is done to memories and settings: one row for each verb of the audit trail and of revisions. Pure.

A further action of operators is a function in curation/ that writes its verb and a form in admin/ that calls it. Only a
verb that is not here yet needs a row. Pages, the audit trail and undo follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Verb:
    """`label`: on pages. `sentence`: tells an event, with %(who)s and %(what)s; where there is none, the label does.

    `special`: by class of the object, where the verb means something else. `undone`: classes of the objects whose
    change by it operators can undo by the usual rule; unusual ones are in RULES of curation/reverting.py.
    """

    label: Promise
    sentence: Promise | None = None
    special: Mapping[str, Promise] = field(default_factory=dict)
    undone: tuple[str, ...] = ()


VERBS: Mapping[str, Verb] = {
    "accept": Verb(_("Accept"), _("%(who)s took over an edit of %(what)s")),
    "accept_invitation": Verb(_("Accept invitation"), _("%(who)s chose a password by an invitation")),
    "add": Verb(_("Add"), _("%(who)s added %(what)s")),
    "add_member": Verb(_("Add member"), _("%(who)s added a member to %(what)s")),
    "approve": Verb(_("Approve"), _("%(who)s approved %(what)s"), undone=("Fact", "ReviewItem")),
    "approve_items": Verb(_("Approve items")),
    "approve_triple": Verb(_("Approve triple"), undone=("GraphTriple",)),
    "archive": Verb(_("Archive"), _("%(who)s archived %(what)s")),
    "ask_to_forget": Verb(_("Ask to forget"), _("%(who)s asked to forget %(what)s")),
    "break_glass": Verb(_("Break glass"), _("%(who)s approved alone, in an emergency: %(what)s")),
    "change": Verb(_("Change"), special={"Skill": _("%(who)s changed the share of sessions of %(what)s")}),
    "change_external_id": Verb(_("Change external id")),
    "change_id": Verb(_("Change id"), _("%(who)s changed the id of %(what)s")),
    "change_member": Verb(_("Change member"), _("%(who)s changed what a member may do: %(what)s")),
    "change_model": Verb(_("Change model"), _("%(who)s changed the language model of %(what)s")),
    "clear": Verb(_("Clear"), _("%(who)s cleared the memories of %(what)s")),
    "complete": Verb(_("Complete"), _("%(who)s completed %(what)s")),
    "confirm": Verb(_("Confirm"), _("%(who)s confirmed %(what)s")),
    "correct": Verb(_("Correct"), _("%(who)s corrected %(what)s"), undone=("Fact",)),
    "correct_author": Verb(_("Correct author"), _("%(who)s corrected whose words %(what)s holds")),
    "correct_triple": Verb(_("Correct triple"), undone=("GraphTriple",)),
    "create": Verb(
        _("Create"), _("%(who)s created %(what)s"), special={"PersonLink": _("%(who)s made a link to %(what)s")}
    ),
    "decay": Verb(_("Decay"), special={"DecayPass": _("A decay pass was carried out")}),
    "decline": Verb(_("Decline"), _("%(who)s declined %(what)s")),
    "delete": Verb(_("Delete"), _("%(who)s deleted %(what)s"), undone=("ProfileSection",)),
    "delete_forbidden": Verb(_("Delete forbidden"), _("%(who)s deleted what %(what)s found")),
    "delete_note": Verb(_("Delete note"), _("%(who)s deleted a note on %(what)s")),
    "disable": Verb(_("Disable"), _("%(who)s disabled %(what)s")),
    "download": Verb(_("Download"), _("%(who)s downloaded %(what)s")),
    "dream": Verb(_("Dream"), _("%(who)s began or carried out %(what)s")),
    "edit": Verb(_("Edit"), _("%(who)s edited %(what)s"), undone=("Fact", "Episode", "ReviewItem")),
    "enable": Verb(_("Enable"), _("%(who)s enabled %(what)s")),
    "end": Verb(_("End"), _("%(who)s ended %(what)s"), special={"PersonLink": _("%(who)s closed their own page")}),
    "end_triple": Verb(_("End triple"), undone=("GraphTriple",)),
    "erase": Verb(
        _("Erase"), _("%(who)s erased %(what)s"), special={"PrivacyCase": _("%(who)s erased the end user of %(what)s")}
    ),
    "expire": Verb(_("Expire"), _("%(who)s set the expiry of %(what)s"), undone=("Fact",)),
    "export": Verb(
        _("Export"),
        # Of lists alone, whose name stands for what was exported.
        _("%(who)s exported the list “%(what)s”"),
        special={"PrivacyCase": _("%(who)s made the file of %(what)s")},
    ),
    "extend": Verb(_("Extend"), _("%(who)s extended the time of %(what)s")),
    "extract": Verb(_("Extract"), _("%(who)s wrote %(what)s")),
    "fade": Verb(_("Fade"), _("%(who)s let %(what)s fade")),
    "fail": Verb(
        _("Fail"),
        _("%(who)s failed at %(what)s"),
        special={
            "DecayPass": _("A worker was lost during %(what)s"),
            "RetentionPass": _("A worker was lost during %(what)s"),
        },
    ),
    "feedback": Verb(_("Feedback"), _("%(who)s rated %(what)s")),
    "forget": Verb(_("Forget"), _("%(who)s forgot %(what)s"), undone=("Fact", "Episode")),
    "forget_filter": Verb(_("Forget filter"), _("%(who)s deleted %(what)s")),
    "forget_triple": Verb(_("Forget triple"), undone=("GraphTriple",)),
    "give_back": Verb(_("Give back"), _("%(who)s gave back %(what)s")),
    "hold": Verb(_("Hold"), _("%(who)s held %(what)s"), special={"DecayPass": _("The safety limit held %(what)s")}),
    "import": Verb(_("Import"), _("%(who)s imported %(what)s")),
    "invite": Verb(_("Invite"), _("%(who)s invited %(what)s")),
    "join": Verb(_("Join"), _("%(who)s gave another name to %(what)s")),
    "join_entities": Verb(_("Join entities"), undone=("GraphEntity",)),
    "join_group": Verb(_("Join group"), _("%(who)s added %(what)s to a group")),
    "keep": Verb(_("Keep"), _("%(who)s looked at %(what)s and let it stand")),
    "keep_both": Verb(_("Keep both"), _("%(who)s kept both facts of %(what)s"), undone=("ReviewItem",)),
    "leave_group": Verb(_("Leave group"), _("%(who)s removed %(what)s from a group")),
    "link": Verb(_("Link"), special={"PrivacyExport": _("%(who)s made a one-time link to an export")}),
    "link_provider": Verb(_("Link provider"), _("%(who)s linked the identity provider to %(what)s")),
    "lock": Verb(_("Lock"), _("%(who)s locked %(what)s"), undone=("Fact",)),
    "merge": Verb(_("Merge"), _("%(who)s merged %(what)s"), undone=("ReviewItem",)),
    "note": Verb(_("Note"), _("%(who)s noted something on %(what)s")),
    "off_board": Verb(_("Off board"), _("%(who)s began the off-boarding of %(what)s")),
    "offboard": Verb(_("Offboard")),
    "open": Verb(
        _("Open"), _("%(who)s opened %(what)s"), special={"PersonLink": _("%(who)s opened their own page by a link")}
    ),
    "pause": Verb(_("Pause"), _("%(who)s paused %(what)s")),
    "pin": Verb(_("Pin"), _("%(who)s pinned %(what)s"), undone=("Fact", "Episode")),
    "promote": Verb(_("Promote"), _("%(who)s shared %(what)s with all agents"), undone=("Fact",)),
    "propose": Verb(_("Propose"), special={"Skill": _("A skill was proposed")}),
    "publish": Verb(_("Publish"), _("%(who)s made %(what)s public"), undone=("Fact",)),
    "purge": Verb(_("Purge"), _("%(who)s deleted %(what)s for good")),
    "put_off_end": Verb(_("Put off end"), _("%(who)s postponed the end of %(what)s")),
    "reconsider": Verb(_("Reconsider"), _("%(who)s reconsidered %(what)s"), undone=("Fact",)),
    "redact": Verb(_("Redact"), _("%(who)s redacted %(what)s")),
    "refine": Verb(_("Refine"), _("%(who)s made %(what)s more precise")),
    "reflect": Verb(_("Reflect"), _("%(who)s looked for patterns and proposed facts in %(what)s")),
    "refuse": Verb(_("Refuse"), _("%(who)s refused %(what)s")),
    "reinforce": Verb(_("Reinforce"), _("%(who)s confirmed %(what)s again")),
    "reject": Verb(_("Reject"), _("%(who)s rejected %(what)s"), undone=("Fact", "ReviewItem")),
    "reject_items": Verb(_("Reject items")),
    "release": Verb(_("Release"), _("%(who)s released %(what)s"), undone=("ProfileSection",)),
    "remove": Verb(_("Remove"), _("%(who)s removed %(what)s")),
    "remove_member": Verb(_("Remove member"), _("%(who)s removed a member from %(what)s")),
    "remove_second_factor": Verb(_("Remove second factor"), _("%(who)s removed the second factor of %(what)s")),
    "restore": Verb(_("Restore"), _("%(who)s restored %(what)s"), undone=("Fact", "Episode", "ProfileSection")),
    "resume": Verb(_("Resume"), _("%(who)s started %(what)s")),
    "retain": Verb(_("Retain"), special={"RetentionPass": _("A retention pass was carried out")}),
    "retry": Verb(_("Retry"), _("%(who)s retried %(what)s")),
    "retry_parked": Verb(_("Retry parked"), _("%(who)s retried the parked work of %(what)s")),
    "revoke": Verb(_("Revoke"), _("%(who)s revoked %(what)s")),
    "revoke_invitation": Verb(_("Revoke invitation"), _("%(who)s revoked the invitation of %(what)s")),
    "rewrite_summary": Verb(_("Rewrite summary"), _("%(who)s rewrote the running summary of %(what)s")),
    "roll_back": Verb(
        _("Roll back"), _("%(who)s rolled back %(what)s"), special={"ChangeSet": _("%(who)s rolled back memories")}
    ),
    "rotate": Verb(_("Rotate"), _("%(who)s rotated %(what)s")),
    "run": Verb(_("Run"), _("%(who)s started %(what)s")),
    "save_filter": Verb(_("Save filter"), _("%(who)s saved %(what)s")),
    "scope": Verb(_("Scope"), _("%(who)s counted the data of %(what)s")),
    "search": Verb(_("Search"), _("%(who)s searched the turns of %(what)s")),
    "seed": Verb(_("Seed"), _("%(who)s seeded %(what)s")),
    "send_again": Verb(_("Send again"), _("%(who)s sent events again to %(what)s")),
    "send_test": Verb(_("Send test"), _("%(who)s sent a test event to %(what)s")),
    "set_password": Verb(_("Set password"), _("%(who)s set the password of %(what)s")),
    "set_preferences": Verb(_("Set preferences"), _("%(who)s set the preferences of %(what)s")),
    "settle": Verb(_("Settle")),
    "split": Verb(_("Split"), _("%(who)s split off %(what)s")),
    "supersede": Verb(_("Supersede"), _("%(who)s replaced %(what)s")),
    "take": Verb(_("Take")),
    "take_back": Verb(_("Take back"), _("%(who)s took back the off-boarding of %(what)s")),
    "take_on": Verb(_("Take on"), _("%(who)s took %(what)s")),
    "tell": Verb(_("Tell"), _("%(who)s noted who was told of %(what)s")),
    "try_extraction": Verb(_("Try extraction"), _("%(who)s tried extraction on %(what)s")),
    "undo": Verb(
        _("Undo"),
        _("%(who)s undid a change of %(what)s"),
        special={"Skill": _("%(who)s took back a decision about %(what)s"), "Import": _("%(who)s undid %(what)s")},
    ),
    "undo_items": Verb(_("Undo items")),
    "undo_merge": Verb(_("Undo merge"), _("%(who)s undid a merge of %(what)s")),
    "undo_roll_back": Verb(
        _("Undo roll back"),
        _("%(who)s undid a roll back of %(what)s"),
        special={"ChangeSet": _("%(who)s undid a roll back")},
    ),
    "unlink_provider": Verb(_("Unlink provider"), _("%(who)s unlinked the identity provider from %(what)s")),
    "unlock": Verb(_("Unlock"), _("%(who)s unlocked %(what)s"), undone=("Fact",)),
    "unpin": Verb(_("Unpin"), _("%(who)s unpinned %(what)s"), undone=("Fact", "Episode")),
    "update": Verb(_("Update"), _("%(who)s updated %(what)s")),
    "upkeep": Verb(_("Upkeep"), special={"DecayPass": _("The nightly maintenance was carried out")}),
    "upload": Verb(_("Upload"), _("%(who)s uploaded %(what)s")),
    "verify": Verb(_("Verify"), _("%(who)s verified %(what)s")),
    "view": Verb(
        _("View"), _("%(who)s looked at %(what)s"), special={"PersonLink": _("%(who)s looked at their own page")}
    ),
    "withdraw": Verb(
        _("Withdraw"),
        _("%(who)s made %(what)s private again"),
        special={"Skill": _("%(who)s withdrew %(what)s")},
        undone=("Fact",),
    ),
    "write": Verb(
        _("Write"),
        _("%(who)s wrote %(what)s"),
        # Fields of a form that the tenant defines.
        special={"EndUser": _("%(who)s filled in a profile of %(what)s")},
        undone=("ProfileSection",),
    ),
}


def undone_of(kind: str) -> frozenset[str]:
    """The verbs whose change of such an object can be undone by the usual rule."""
    return frozenset(name for name, verb in VERBS.items() if kind in verb.undone)
