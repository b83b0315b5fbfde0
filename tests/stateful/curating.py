"""What operators and keys do: to facts, questions, episodes, the profile, people."""

from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q
from hypothesis import strategies as st
from hypothesis.stateful import rule

from memories.curation import episodes
from memories.curation.facts import keeping
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.feedback import give_feedback
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.merging import merge_facts
from memories.curation.facts.restoring import restore_fact
from memories.curation.facts.splitting import split_fact
from memories.curation.people.records import update_person
from memories.curation.profile.sections import release_profile_section, restore_profile_section, write_profile_section
from memories.curation.reverting import revert
from memories.curation.review import suggestions
from memories.curation.review.deciding import Choice
from memories.curation.review.decisions import approve_edited, approve_item, keep_both, merge_items, reject_item
from memories.curation.review.undo import undo_decision
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.models import ChangeSet, EndUser, Fact, ProfileRevision, ReviewItem, Section
from tests.stateful.texts import CATEGORIES, KEYS, PHRASES, VALUES, marked
from tests.stateful.world import NTH, WHO, World, nth_of

PHRASE = st.sampled_from(PHRASES)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "content": PHRASE,
        "importance": st.sampled_from([0.0, 0.1, 0.5, 1.0]),
        "confidence": st.sampled_from([0.0, 0.5, 0.9]),
        "key": st.sampled_from(KEYS),
        "value": st.sampled_from(VALUES),
        "category": st.sampled_from(CATEGORIES),
    },
)
OF_FACTS = ("edit", "edit", "correct", "forget", "restore", "restore", "delete")
VERBS: dict[str, Any] = {
    "edit": edit_fact,
    "correct": correct_fact,
    "forget": forget_fact,
    "restore": restore_fact,
    "delete": delete_fact,
}
OF_EPISODES = ("edit", "pin", "unpin", "forget", "restore", "delete")
DECISIONS = (*Choice, "undo")
BY_KEY = st.booleans()


class Curating(World):
    """Each verb may say no; what it says in other words than the hub's own is a fault."""

    @rule(who=WHO, phrase=PHRASE, category=st.sampled_from(CATEGORIES), key=st.sampled_from(KEYS), by_key=BY_KEY)
    def state(self, who: int, phrase: str, category: str, key: str, by_key: bool) -> None:
        somebody = self.people[who]
        value = VALUES[len(phrase) % len(VALUES)] if key else ""
        draft = FactDraft(marked(somebody.marker, phrase), category, key=key, value=value)
        self.do(add_fact, end_user=somebody.row, draft=draft, actor=self.actor(by_key=by_key), now=self.now)

    @rule(who=WHO, nth=NTH, verb=st.sampled_from(OF_FACTS), changes=CHANGES, phrase=PHRASE, by_key=BY_KEY)
    def change_fact(self, who: int, nth: int, verb: str, changes: dict[str, Any], phrase: str, by_key: bool) -> None:
        fact = self.pick_fact(who, nth)
        if fact is None:
            return
        said = marked(self.people[who].marker, phrase)
        if "content" in changes:
            changes = {**changes, "content": said}
        more: dict[str, dict[str, Any]] = {
            "edit": {"changes": changes},
            "correct": {"content": said, "reason": "They told me"},
            "restore": {"version": nth % 3 or None},
        }
        given: dict[str, Any] = {"fact_id": fact.pk, "tenant": fact.tenant, "now": self.now, **more.get(verb, {})}
        self.do(VERBS[verb], actor=self.actor(by_key=by_key and verb != "correct"), **given)

    @rule(who=WHO, nth=NTH, by_key=BY_KEY, useful=st.booleans())
    def give_feedback(self, who: int, nth: int, by_key: bool, useful: bool) -> None:
        fact = self.pick_fact(who, nth, status="active")
        if fact:
            given: dict[str, Any] = {"fact_id": fact.pk, "tenant": fact.tenant, "useful": useful, "now": self.now}
            self.do(give_feedback, actor=self.actor(by_key=by_key), **given)

    @rule(who=WHO, nth=NTH, verb=st.sampled_from(["pin", "lock", "unpin", "unlock"]))
    def keep(self, who: int, nth: int, verb: str) -> None:
        fact = self.pick_fact(who, nth, status="active")
        if fact:
            self.do(getattr(keeping, f"{verb}_fact"), fact_id=fact.pk, actor=self.operator, now=self.now)

    @rule(who=WHO, nth=NTH, act=st.sampled_from(["merge", "split", "undo"]), phrase=PHRASE)
    def merge_facts(self, who: int, nth: int, act: str, phrase: str) -> None:
        somebody = self.people[who]
        said = marked(somebody.marker, phrase)
        given: dict[str, Any] = {"actor": self.operator, "now": self.now}
        if act == "merge":
            pair = Fact.objects.filter(end_user=somebody.row, status="active").order_by("pk")[nth : nth + 2]
            seen = {fact.pk: fact.version for fact in pair}
            if len(seen) == 2:
                self.do(merge_facts, survivor=next(iter(seen)), expected=seen, content=said, **given)
        elif act == "split":
            fact = self.pick_fact(who, nth, status="superseded")
            if fact:
                self.do(split_fact, fact_id=fact.pk, rest=said, **given)
        else:
            # Whatever an operator did to the person; what cannot be taken back says so.
            about = [Q(**{f"{name}end_user": somebody.row}) for name in ("fact__", "item__", "episode__", "")]
            made = nth_of(list(ChangeSet.objects.filter(reduce(or_, about), undone_at=None)), nth)
            if made:
                self.do(revert, change_set=made.pk, **given)

    @rule(who=WHO, nth=NTH, verb=st.sampled_from(["approve", "reject", "reconsider"]))
    def review_fact(self, who: int, nth: int, verb: str) -> None:
        fact = self.pick_fact(who, nth, status="rejected" if verb == "reconsider" else "pending")
        if fact:
            self.do(getattr(suggestions, f"{verb}_fact"), fact_id=fact.pk, actor=self.operator, now=self.now)

    @rule(who=WHO, nth=NTH, decision=st.sampled_from(DECISIONS), phrase=PHRASE, first=st.booleans())
    def decide(self, who: int, nth: int, decision: str, phrase: str, first: bool) -> None:
        item = self.pick_item(who, nth, **({"change_set__isnull": False} if decision == "undo" else {"state": "open"}))
        if item is None:
            return
        given: dict[str, Any] = {"item_id": item.pk, "actor": self.operator, "now": self.now}
        said = marked(self.people[who].marker, phrase)
        if decision == "merge":
            survivor = item.fact_id if first else item.known_id
            self.do(merge_items, survivor=survivor, content=said, reason="One", **given)
        elif decision == "reject":
            self.do(reject_item, reason="No", **given)
        elif decision == "edit":
            self.do(approve_edited, changes={"summary": said}, **given)
        else:
            verbs: dict[str, Any] = {
                "approve": approve_item,
                "keep_both": keep_both,
                "undo": undo_decision,
            }
            self.do(verbs[decision], **given)
        self._check_decided(item, decision)

    def _check_decided(self, item: ReviewItem, decision: str) -> None:
        """A question that was answered waits no longer."""
        now_there = ReviewItem.objects.filter(pk=item.pk).first()
        if decision == "undo" or now_there is None or now_there.state == "open":
            return
        assert now_there.version > item.version

    @rule(who=WHO, nth=NTH, verb=st.sampled_from(OF_EPISODES), phrase=PHRASE, by_key=BY_KEY)
    def change_episode(self, who: int, nth: int, verb: str, phrase: str, by_key: bool) -> None:
        episode = self.pick_episode(who, nth)
        if episode is None:
            return
        given: dict[str, Any] = {"episode_id": episode.pk, "now": self.now}
        if verb in ("pin", "unpin", "restore"):
            self.do(getattr(episodes, f"{verb}_episode"), actor=self.operator, **given)
            return
        given |= {"tenant": episode.tenant, "actor": self.actor(by_key=by_key)}
        if verb == "edit":
            given["changes"] = {"summary": marked(self.people[who].marker, phrase), "importance": 0.15}
        self.do(getattr(episodes, f"{verb}_episode"), **given)

    @rule(who=WHO, section=st.sampled_from(Section.values[:2]), phrase=st.sampled_from(["", *PHRASES]), by_key=BY_KEY)
    def write_section(self, who: int, section: str, phrase: str, by_key: bool) -> None:
        somebody = self.people[who]
        said = marked(somebody.marker, phrase) if phrase else ""
        given: dict[str, Any] = {"end_user": somebody.row, "section": section, "summary": said, "now": self.now}
        self.do(write_profile_section, actor=self.actor(by_key=by_key), **given)

    @rule(who=WHO, nth=NTH, release=st.booleans())
    def restore_section(self, who: int, nth: int, release: bool) -> None:
        revisions = ProfileRevision.objects.filter(end_user=self.people[who].row).order_by("pk")
        for revision in revisions[nth : nth + 1]:
            given: dict[str, Any] = {"actor": self.operator, "now": self.now}
            if release:
                about = {"end_user": self.people[who].row, "section": revision.section}
                self.do(release_profile_section, **about, **given)
            else:
                self.do(restore_profile_section, revision=revision, **given)

    @rule(who=WHO, nth=NTH, undo=st.booleans())
    def roll_back(self, who: int, nth: int, undo: bool) -> None:
        given: dict[str, Any] = {"actor": self.operator, "now": self.now}
        if undo:
            done = ChangeSet.objects.filter(verb="roll_back").first()
            if done:
                self.do(revert, change_set=done.pk, **given)
            return
        sessions = self.sessions_of(who)
        if sessions:
            taken = sessions[nth % len(sessions)]
            self.do(roll_back, selector=Selector(taken.tenant, session=taken.pk), **given)

    @rule(who=WHO, name=st.sampled_from(["capture", "serve", "restricted"]), on=st.booleans())
    def switch(self, who: int, name: str, on: bool) -> None:
        row = self.people[who].row
        if name == "restricted":
            # As a privacy case does and undoes.
            self.wait()
            EndUser.objects.filter(pk=row.pk).update(restricted_at=self.now if on else None)
        else:
            changes = {name: on}
            self.do(update_person, end_user=row, changes=changes, actor=self.operator, now=self.now)
        row.refresh_from_db()
