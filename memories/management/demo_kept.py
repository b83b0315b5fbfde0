"""What the demo's person has beside facts: files, a diary, a graph, a group, a dream and an item of the store.

All is written by the verbs that keys and workers use, at a moment of the conversations, so that each page of the menu
shows something that can be edited, undone and erased.
"""

from datetime import datetime, timedelta

from memories.audit import Actor
from memories.curation.diary import write_entry
from memories.curation.files import FileWriter, NewContent, write_file
from memories.curation.graph.stating import TripleDraft, TripleRelation, add_triple
from memories.curation.groups.facts import state_group_fact
from memories.curation.groups.membership import create_group
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.dream import applying, summaries
from memories.dream.dreaming import writer_of
from memories.management.demo_text import DIARY, FILES, GROUP, LEARNED, STORED, TRIPLES
from memories.models import Dream, DreamedEpisode, DreamEdit, EndUser, Episode, MemoryGroup, Trust
from memories.store.viewers import StoreViewer
from memories.store.writing import Write, write

AGENT = "support"
# When the files were written, and when the dream changed one.
FILED, DREAMT = timedelta(days=11), timedelta(days=10)


def keep(person: EndUser, *, extractor: str, prompt_version: str, actor: Actor, now: datetime) -> None:
    """Write it for this person, whose conversations and episodes are there. Call it inside a transaction."""
    writer = FileWriter(actor, now - FILED)
    for path, text in FILES.items():
        content = NewContent.of(text.encode(), "")
        write_file(end_user=person, agent_id=AGENT, path=path, content=content, writer=writer)
    _dream(person, Dream(extractor=extractor, prompt_version=prompt_version), now=now - DREAMT)
    for days_ago, topic, note in DIARY:
        moment = now - timedelta(days=days_ago)
        write_trust = WriteTrust(Trust.ASSISTANT)
        write_entry(
            end_user=person, agent_id=AGENT, content=note, topic=topic, actor=actor, now=moment, write_trust=write_trust
        )
    for subject, predicate, other, days_ago in TRIPLES:
        since = now - timedelta(days=days_ago)
        draft = TripleDraft(TripleRelation(subject, predicate, other), valid_from=since)
        add_triple(end_user=person, draft=draft, actor=actor, now=now - FILED)
    _group(person, actor=actor, now=now - FILED)
    items = [Write(("memories", person.external_id, *labels), key, value) for labels, key, value in STORED]
    write(items, tenant=person.tenant, viewer=StoreViewer(person.tenant), now=now - FILED)


def _dream(person: EndUser, dream: Dream, *, now: datetime) -> None:
    """One that read the agent's episodes and changed a file."""
    episodes = list(Episode.objects.filter(tenant=person.tenant, end_user=person, session__agent_id=AGENT))
    dream.tenant, dream.end_user, dream.agent_id = person.tenant, person, AGENT
    dream.trigger, dream.state = Dream.Trigger.SCHEDULE, Dream.State.APPLIED
    dream.episodes, dream.started_at, dream.finished_at = len(episodes), now, now
    path, text = LEARNED
    edits = [DreamEdit(tenant=person.tenant, dream=dream, number=1, path=path, new_text=text)]
    dream.save(force_insert=True)
    applying.apply(dream, edits, writer=writer_of(dream, now=now))
    DreamEdit.objects.bulk_create(edits)
    dream.summary = summaries.summary_of(edits)
    dream.save(update_fields=["summary"])
    DreamedEpisode.objects.bulk_create(
        DreamedEpisode(tenant=person.tenant, dream=dream, episode=episode) for episode in episodes
    )


def _group(person: EndUser, *, actor: Actor, now: datetime) -> None:
    name, facts = GROUP
    kind = MemoryGroup.Kind.TEAM
    group = create_group(tenant=person.tenant, name=name, kind=kind, actor=actor, now=now, members=[person])
    for content in facts:
        state_group_fact(
            group_id=group.pk,
            end_user=person,
            content=content,
            agent_id=AGENT,
            actor=actor,
            now=now,
            write_trust=AS_USER,
        )
