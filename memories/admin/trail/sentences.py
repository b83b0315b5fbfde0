"""Events of the audit trail as sentences: "Anna corrected a fact of Li Wei".

The trail has codes and ids alone. Whose memory it was is looked up for who may see the person, and stands nowhere.
"""

import re
from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.site.naming import kind_named, list_named
from memories.admin.site.wording import verb_of
from memories.kinds import PLAIN

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_HAN, _LATIN = re.compile(r"[\u3400-\u9fff]"), re.compile(r"[A-Za-z0-9]")

# What an event was about, by the class name that the trail has; first without, then with the person.
OBJECTS: Mapping[str, tuple[Promise, Promise | str]] = {
    "Fact": (gettext_lazy("a fact"), gettext_lazy("a fact of %(person)s")),
    "Episode": (gettext_lazy("an episode"), gettext_lazy("an episode of %(person)s")),
    "ProfileSection": (gettext_lazy("a profile section"), gettext_lazy("a profile section of %(person)s")),
    "Attachment": (gettext_lazy("an attachment"), gettext_lazy("an attachment of %(person)s")),
    "MemoryFile": (gettext_lazy("a memory file"), gettext_lazy("a memory file of %(person)s")),
    **{kind.model.__name__: kind.plain.in_trail for kind in PLAIN if kind.plain},
    "GraphTriple": (gettext_lazy("a triple"), gettext_lazy("a triple of %(person)s")),
    "GraphEntity": (gettext_lazy("an entity"), gettext_lazy("an entity of %(person)s")),
    "Dream": (gettext_lazy("a dream"), gettext_lazy("a dream about %(person)s")),
    "MemoryGroup": (gettext_lazy("a group"), gettext_lazy("a group of %(person)s")),
    "GroupFact": (gettext_lazy("a fact of a group"), gettext_lazy("a fact of a group of %(person)s")),
    "StoreItem": (gettext_lazy("an item of the store"), gettext_lazy("an item of the store of %(person)s")),
    "ReviewItem": (gettext_lazy("a review item"), gettext_lazy("a review item of %(person)s")),
    "Session": (gettext_lazy("a session"), gettext_lazy("a session of %(person)s")),
    "Skill": (gettext_lazy("a skill"), ""),
    "Trajectory": (gettext_lazy("a trajectory"), gettext_lazy("a trajectory of %(person)s")),
    "Turn": (gettext_lazy("a turn"), gettext_lazy("a turn of %(person)s")),
    "ExtractionRun": (gettext_lazy("an extraction run"), gettext_lazy("an extraction run of %(person)s")),
    "PrivacyCase": (gettext_lazy("a privacy case"), gettext_lazy("a privacy case of %(person)s")),
    "EndUser": (gettext_lazy("an end user"), gettext_lazy("%(person)s")),
    "PrivacyExport": (gettext_lazy("an export"), gettext_lazy("an export of %(person)s")),
    "PersonLink": (gettext_lazy("a person’s own page"), gettext_lazy("the own page of %(person)s")),
    # Nobody's: the second is never shown.
    "Agent": (gettext_lazy("an agent"), ""),
    "APIKey": (gettext_lazy("an API key"), ""),
    "ChangeSet": (gettext_lazy("a set of changes"), ""),
    "ContentPolicy": (gettext_lazy("a content policy"), ""),
    "PolicyTrial": (gettext_lazy("a dry run of a content policy"), ""),
    "ProfileSchema": (gettext_lazy("a profile schema"), ""),
    "DecayPass": (gettext_lazy("a decay pass"), ""),
    "Group": (gettext_lazy("a role"), ""),
    "Import": (gettext_lazy("an import"), ""),
    "ManagementKey": (gettext_lazy("a management key"), ""),
    "Operator": (gettext_lazy("an operator"), ""),
    "RetentionPass": (gettext_lazy("a retention pass"), ""),
    "SavedFilter": (gettext_lazy("a saved filter"), ""),
    "Tenant": (gettext_lazy("a tenant"), ""),
    "WebhookEndpoint": (gettext_lazy("a webhook"), ""),
}
SENTENCES: Mapping[str, Promise] = {
    "accept": gettext_lazy("%(who)s took over an edit of %(what)s"),
    "accept_invitation": gettext_lazy("%(who)s chose a password by an invitation"),
    "add": gettext_lazy("%(who)s added %(what)s"),
    "add_member": gettext_lazy("%(who)s added a member to %(what)s"),
    "approve": gettext_lazy("%(who)s approved %(what)s"),
    "archive": gettext_lazy("%(who)s archived %(what)s"),
    "ask_to_forget": gettext_lazy("%(who)s asked to forget %(what)s"),
    "break_glass": gettext_lazy("%(who)s approved alone, in an emergency: %(what)s"),
    "change_id": gettext_lazy("%(who)s changed the id of %(what)s"),
    "change_member": gettext_lazy("%(who)s changed what a member may do: %(what)s"),
    "change_model": gettext_lazy("%(who)s changed the language model of %(what)s"),
    "clear": gettext_lazy("%(who)s cleared the memories of %(what)s"),
    "complete": gettext_lazy("%(who)s completed %(what)s"),
    "confirm": gettext_lazy("%(who)s confirmed %(what)s"),
    "correct": gettext_lazy("%(who)s corrected %(what)s"),
    "correct_author": gettext_lazy("%(who)s corrected whose words %(what)s holds"),
    "create": gettext_lazy("%(who)s created %(what)s"),
    "decline": gettext_lazy("%(who)s declined %(what)s"),
    "delete": gettext_lazy("%(who)s deleted %(what)s"),
    "delete_forbidden": gettext_lazy("%(who)s deleted what %(what)s found"),
    "delete_note": gettext_lazy("%(who)s deleted a note on %(what)s"),
    "disable": gettext_lazy("%(who)s disabled %(what)s"),
    "download": gettext_lazy("%(who)s downloaded %(what)s"),
    "dream": gettext_lazy("%(who)s began or carried out %(what)s"),
    "edit": gettext_lazy("%(who)s edited %(what)s"),
    "enable": gettext_lazy("%(who)s enabled %(what)s"),
    "end": gettext_lazy("%(who)s ended %(what)s"),
    "erase": gettext_lazy("%(who)s erased %(what)s"),
    "expire": gettext_lazy("%(who)s set the expiry of %(what)s"),
    # Of lists alone, whose name stands for what was exported.
    "export": gettext_lazy("%(who)s exported the list “%(what)s”"),
    "extend": gettext_lazy("%(who)s extended the time of %(what)s"),
    "extract": gettext_lazy("%(who)s wrote %(what)s"),
    "fade": gettext_lazy("%(who)s let %(what)s fade"),
    "fail": gettext_lazy("%(who)s failed at %(what)s"),
    "feedback": gettext_lazy("%(who)s rated %(what)s"),
    "forget": gettext_lazy("%(who)s forgot %(what)s"),
    "forget_filter": gettext_lazy("%(who)s deleted %(what)s"),
    "give_back": gettext_lazy("%(who)s gave back %(what)s"),
    "hold": gettext_lazy("%(who)s held %(what)s"),
    "import": gettext_lazy("%(who)s imported %(what)s"),
    "invite": gettext_lazy("%(who)s invited %(what)s"),
    "join": gettext_lazy("%(who)s gave another name to %(what)s"),
    "join_group": gettext_lazy("%(who)s added %(what)s to a group"),
    "keep": gettext_lazy("%(who)s looked at %(what)s and let it stand"),
    "keep_both": gettext_lazy("%(who)s kept both facts of %(what)s"),
    "leave_group": gettext_lazy("%(who)s removed %(what)s from a group"),
    "link_provider": gettext_lazy("%(who)s linked the identity provider to %(what)s"),
    "lock": gettext_lazy("%(who)s locked %(what)s"),
    "merge": gettext_lazy("%(who)s merged %(what)s"),
    "note": gettext_lazy("%(who)s noted something on %(what)s"),
    "off_board": gettext_lazy("%(who)s began the off-boarding of %(what)s"),
    "open": gettext_lazy("%(who)s opened %(what)s"),
    "pause": gettext_lazy("%(who)s paused %(what)s"),
    "pin": gettext_lazy("%(who)s pinned %(what)s"),
    "promote": gettext_lazy("%(who)s shared %(what)s with all agents"),
    "publish": gettext_lazy("%(who)s made %(what)s public"),
    "purge": gettext_lazy("%(who)s deleted %(what)s for good"),
    "put_off_end": gettext_lazy("%(who)s postponed the end of %(what)s"),
    "reconsider": gettext_lazy("%(who)s reconsidered %(what)s"),
    "redact": gettext_lazy("%(who)s redacted %(what)s"),
    "refine": gettext_lazy("%(who)s made %(what)s more precise"),
    "reflect": gettext_lazy("%(who)s looked for patterns and proposed facts in %(what)s"),
    "refuse": gettext_lazy("%(who)s refused %(what)s"),
    "reinforce": gettext_lazy("%(who)s confirmed %(what)s again"),
    "reject": gettext_lazy("%(who)s rejected %(what)s"),
    "release": gettext_lazy("%(who)s released %(what)s"),
    "remove": gettext_lazy("%(who)s removed %(what)s"),
    "remove_member": gettext_lazy("%(who)s removed a member from %(what)s"),
    "remove_second_factor": gettext_lazy("%(who)s removed the second factor of %(what)s"),
    "restore": gettext_lazy("%(who)s restored %(what)s"),
    "resume": gettext_lazy("%(who)s started %(what)s"),
    "retry": gettext_lazy("%(who)s retried %(what)s"),
    "retry_parked": gettext_lazy("%(who)s retried the parked work of %(what)s"),
    "revoke": gettext_lazy("%(who)s revoked %(what)s"),
    "revoke_invitation": gettext_lazy("%(who)s revoked the invitation of %(what)s"),
    "rewrite_summary": gettext_lazy("%(who)s rewrote the running summary of %(what)s"),
    "roll_back": gettext_lazy("%(who)s rolled back %(what)s"),
    "rotate": gettext_lazy("%(who)s rotated %(what)s"),
    "run": gettext_lazy("%(who)s started %(what)s"),
    "save_filter": gettext_lazy("%(who)s saved %(what)s"),
    "scope": gettext_lazy("%(who)s counted the data of %(what)s"),
    "search": gettext_lazy("%(who)s searched the turns of %(what)s"),
    "seed": gettext_lazy("%(who)s seeded %(what)s"),
    "send_again": gettext_lazy("%(who)s sent events again to %(what)s"),
    "send_test": gettext_lazy("%(who)s sent a test event to %(what)s"),
    "set_password": gettext_lazy("%(who)s set the password of %(what)s"),
    "set_preferences": gettext_lazy("%(who)s set the preferences of %(what)s"),
    "split": gettext_lazy("%(who)s split off %(what)s"),
    "supersede": gettext_lazy("%(who)s replaced %(what)s"),
    "take_back": gettext_lazy("%(who)s took back the off-boarding of %(what)s"),
    "take_on": gettext_lazy("%(who)s took %(what)s"),
    "tell": gettext_lazy("%(who)s noted who was told of %(what)s"),
    "undo": gettext_lazy("%(who)s undid a change of %(what)s"),
    "undo_merge": gettext_lazy("%(who)s undid a merge of %(what)s"),
    "undo_roll_back": gettext_lazy("%(who)s undid a roll back of %(what)s"),
    "try_extraction": gettext_lazy("%(who)s tried extraction on %(what)s"),
    "unlink_provider": gettext_lazy("%(who)s unlinked the identity provider from %(what)s"),
    "unlock": gettext_lazy("%(who)s unlocked %(what)s"),
    "unpin": gettext_lazy("%(who)s unpinned %(what)s"),
    "update": gettext_lazy("%(who)s updated %(what)s"),
    "upload": gettext_lazy("%(who)s uploaded %(what)s"),
    "verify": gettext_lazy("%(who)s verified %(what)s"),
    "view": gettext_lazy("%(who)s looked at %(what)s"),
    "withdraw": gettext_lazy("%(who)s made %(what)s private again"),
    "write": gettext_lazy("%(who)s wrote %(what)s"),
}

# Where the verb means something else for one kind of object.
SPECIAL: Mapping[tuple[str, str], Promise] = {
    ("decay", "DecayPass"): gettext_lazy("A decay pass was carried out"),
    # Fields of a form that the tenant defines.
    ("write", "EndUser"): gettext_lazy("%(who)s filled in a profile of %(what)s"),
    ("create", "PersonLink"): gettext_lazy("%(who)s made a link to %(what)s"),
    ("end", "PersonLink"): gettext_lazy("%(who)s closed their own page"),
    ("open", "PersonLink"): gettext_lazy("%(who)s opened their own page by a link"),
    ("view", "PersonLink"): gettext_lazy("%(who)s looked at their own page"),
    ("erase", "PrivacyCase"): gettext_lazy("%(who)s erased the end user of %(what)s"),
    ("export", "PrivacyCase"): gettext_lazy("%(who)s made the file of %(what)s"),
    ("link", "PrivacyExport"): gettext_lazy("%(who)s made a one-time link to an export"),
    ("fail", "DecayPass"): gettext_lazy("A worker was lost during %(what)s"),
    ("fail", "RetentionPass"): gettext_lazy("A worker was lost during %(what)s"),
    ("hold", "DecayPass"): gettext_lazy("The safety limit held %(what)s"),
    ("retain", "RetentionPass"): gettext_lazy("A retention pass was carried out"),
    ("roll_back", "ChangeSet"): gettext_lazy("%(who)s rolled back memories"),
    ("propose", "Skill"): gettext_lazy("A skill was proposed"),
    ("change", "Skill"): gettext_lazy("%(who)s changed the share of sessions of %(what)s"),
    ("withdraw", "Skill"): gettext_lazy("%(who)s withdrew %(what)s"),
    ("undo", "Skill"): gettext_lazy("%(who)s took back a decision about %(what)s"),
    ("undo", "Import"): gettext_lazy("%(who)s undid %(what)s"),
    ("undo_roll_back", "ChangeSet"): gettext_lazy("%(who)s undid a roll back"),
    ("upkeep", "DecayPass"): gettext_lazy("The nightly maintenance was carried out"),
}


def sentence_of(*, who: str, verb: str, object_type: str, person: str = "", what: str = "") -> str:
    """The event in words; `person` is whose it was, empty if nobody's, gone, or not for the operator to see.

    `what` names the object where the page has a better name for it than its kind.
    """
    plain, of_person = OBJECTS.get(object_type, ("", ""))
    sentence = SPECIAL.get((verb, object_type)) or SENTENCES.get(verb)
    if verb == "export" and (verb, object_type) not in SPECIAL:
        what = list_named(object_type)
    elif not what:
        what = (_filled(str(of_person), person=person) if person else str(plain)) or kind_named(object_type)
    template = str(sentence) if sentence else _("%(who)s: %(verb)s – %(what)s")
    return _filled(template, who=who, verb=verb_of(verb), what=what)


def _filled(template: str, **words: str) -> str:
    """The template with these words, set as Chinese is: a space between a Chinese and a Latin character, none between
    two Chinese ones. Names come in any script, so no translation can have the right space around them.
    """
    filled = ""
    for place, part in enumerate(_PLACEHOLDER.split(template)):
        piece = words[part] if place % 2 else part
        left, right = filled.rstrip(" "), piece.lstrip(" ")
        scripts = _script(left[-1:]), _script(right[:1])
        if scripts == ("han", "han"):
            filled = left + right
        elif set(scripts) == {"han", "latin"}:
            filled = f"{left} {right}"
        else:
            filled += piece
    return filled


def _script(character: str) -> str:
    return "han" if _HAN.match(character) else "latin" if _LATIN.match(character) else ""
