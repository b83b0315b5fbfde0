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
from memories.verbs import VERBS

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


def sentence_of(*, who: str, verb: str, object_type: str, person: str = "", what: str = "") -> str:
    """The event in words; `person` is whose it was, empty if nobody's, gone, or not for the operator to see.

    `what` names the object where the page has a better name for it than its kind.
    """
    plain, of_person = OBJECTS.get(object_type, ("", ""))
    row = VERBS.get(verb)
    special = row.special.get(object_type) if row else None
    sentence = special or (row and row.sentence)
    if verb == "export" and not special:
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
