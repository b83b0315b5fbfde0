"""Every operation of the API, as `_calls` describes it.

`user_id=None` leaves the person out: with a key for one person it is that one. On the lists and objects of facts
`agent_id` and `roles` say who asks, and your key vouches for both.

Written by `clients/python/generate.py` from the hub's OpenAPI document: change it there.
"""
# mypy: disable-error-code="empty-body"

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from memoryhub_client._calls import UNSET, Unset, listing, operation
from memoryhub_client.models import (
    Agent,
    Answer,
    CaseType,
    Category,
    ContentPolicy,
    Context,
    ContextLanguage,
    Conversation,
    Deleted,
    DiaryEntry,
    Direction,
    Downloaded,
    Dream,
    DreamStatus,
    DreamWithEdits,
    DryRun,
    EndedTriples,
    Episode,
    EvidenceLevel,
    Extraction,
    Fact,
    FactFilterStatus,
    FactOrder,
    FactScope,
    FactSource,
    FactType,
    FileContent,
    FileEntry,
    FilesDeleted,
    FileToUpload,
    FileVersion,
    Fill,
    Filters,
    Finding,
    Found,
    FoundFiles,
    FoundKind,
    FoundLines,
    FoundStoreItems,
    GraphStats,
    Group,
    GroupFact,
    GroupKind,
    GroupMember,
    HeldSection,
    Import,
    ImportSource,
    ImportStatus,
    Include,
    Limits,
    MemoryDocument,
    NewMessage,
    NewPolicyCategory,
    NewStep,
    Passage,
    Person,
    PersonAct,
    PersonDetail,
    PersonLink,
    PersonProfile,
    PolicyDrop,
    PolicyRoad,
    PolicyTopics,
    Preview,
    PrivacyCase,
    Profile,
    ProfileSchemas,
    Receipt,
    Receipts,
    RestoredDream,
    Retry,
    Revision,
    RunStatus,
    SectionName,
    Session,
    SessionDetail,
    Skill,
    SkillVersion,
    Standing,
    StatedBy,
    StatedRelation,
    StatedScope,
    StatedSource,
    Step,
    StoreAnswers,
    StoredAttachment,
    StoredAttachmentState,
    StoredDiaryEntry,
    StoredDocument,
    StoredFile,
    StoredGroupFact,
    StoreItem,
    StoreNamespaces,
    StoreOperation,
    Trajectory,
    TrajectoryOutcome,
    TrajectoryReceipt,
    Triple,
    Trust,
    Turn,
    Uploaded,
    WholeSkill,
)


class Operations:
    """What a hub can be asked."""

    @listing("/agents")
    def list_agents(
        self, *, agent_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Agent:
        """List the agents, newest first.

        An agent is listed once turns were posted with its `agent_id`. Needs the scope `read`.

        `agent_id`: Only the agent that you call so.
        """
        ...

    @operation("GET", "/agents/{agent_id}")
    def get_agent(self, agent_id: str) -> Agent:
        """Get an agent. Needs the scope `read`."""
        ...

    @operation("PATCH", "/agents/{agent_id}")
    def change_agent(
        self,
        agent_id: str,
        *,
        extraction: bool | Unset = UNSET,
        recall: bool | Unset = UNSET,
        guidance: str | Unset = UNSET,
    ) -> Agent:
        """Change an agent's switches and guidance.

        What an operator switched off, and guidance that an operator wrote, answer 409 `operator_word`. Needs
        the scope `write`.

        `extraction`: false: turns of its sessions are stored and wait.
        `recall`: false: its contexts and searches are empty.
        `guidance`: Instructions to the model for its sessions, after those of the tenant.
        """
        ...

    @operation("POST", "/answer")
    def answer_question(
        self,
        *,
        user_id: str | None,
        question: str,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        as_of: datetime | str | None = None,
        searches: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> Answer:
        """Answer a question about a person, each sentence with the memories that say it.

        What is remembered is searched, the tenant's model answers from it, and a sentence that the memories it
        cites do not say is cut. Nothing is stored but the tokens, for the daily caps. With `stream` it comes as
        server-sent events: `searches`, `evidence`, a `sentence` each time that one is certain, and `done` with
        the object that is the answer otherwise; or `error` with a problem document. Needs the scope `read`.

        `agent_id`: Whose private facts may answer besides the person's own.
        `roles`: Roles that the person has, for guarded facts.
        `as_of`: Facts that were true then, and what had been said by then.
        `searches`: How many at most; beyond the question's own the model plans them, in a call of its own.
        `max_tokens`: What all calls of the model may read and write together.
        `max_cost`: The same in US dollars, where the model's prices are set.
        """
        ...

    @listing("/attachments")
    def list_attachments(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        state: StoredAttachmentState | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> StoredAttachment:
        """List the files that came with a person's turns, newest first. Needs the scope `read`.

        `agent_id`: Only files of this agent's sessions.
        `session_id`: Only files that came in a session that you call so.
        `state`: Only files of which this became.
        """
        ...

    @operation("GET", "/attachments/{attachment_id}")
    def get_attachment(self, attachment_id: str) -> StoredAttachment:
        """Get a file that came with a turn: what became of it. Needs the scope `read`."""
        ...

    @operation("DELETE", "/attachments/{attachment_id}")
    def delete_attachment(self, attachment_id: str) -> None:
        """Delete a file that came with a turn, and its passages.

        The turn stays. A worker that reads the file at this moment stores nothing. Needs the scope `write`.
        """
        ...

    @listing("/attachments/{attachment_id}/passages")
    def list_passages(self, attachment_id: str, *, page_size: int | None = None, cursor: str | None = None) -> Passage:
        """Read the text of a file that came with a turn, passage by passage. Needs the scope `read`."""
        ...

    @operation("GET", "/content-policy")
    def get_content_policy(self) -> ContentPolicy:
        """Get the content policy. Needs the scope `read`."""
        ...

    @operation("PUT", "/content-policy")
    def put_content_policy(
        self, *, categories: Sequence[NewPolicyCategory], if_match: int | None = None
    ) -> ContentPolicy:
        """Give the tenant this content policy.

        From the next text on. What is stored already stays: a dry run finds what would go. Needs the scope
        `write`.

        `categories`: Empty: nothing is forbidden.
        """
        ...

    @operation("POST", "/content-policy/dry-runs")
    def start_policy_dry_run(
        self, *, categories: Sequence[NewPolicyCategory] | None = None, idempotency_key: str | None = None
    ) -> DryRun:
        """Find out which stored memories these categories would not allow.

        A job: ask for the dry run until it is done. Nothing is deleted by it. Needs the scope `write`.

        `categories`: Left out: those of the policy in force.
        """
        ...

    @operation("GET", "/content-policy/dry-runs/{trial_id}")
    def get_policy_dry_run(self, trial_id: str) -> DryRun:
        """Get a dry run with its progress and what it found. Needs the scope `read`."""
        ...

    @operation("POST", "/content-policy/dry-runs/{trial_id}/delete")
    def delete_policy_dry_run_findings(self, trial_id: str, *, idempotency_key: str | None = None) -> DryRun:
        """Move what a dry run found to the trash.

        A job. An operator can undo it as a whole. Needs the scope `write`.
        """
        ...

    @listing("/content-policy/dry-runs/{trial_id}/findings")
    def list_policy_dry_run_findings(
        self, trial_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> Finding:
        """List the memories that a dry run found, and that are not deleted yet. Needs the scope `read`."""
        ...

    @listing("/content-policy/log")
    def list_content_policy_drops(
        self,
        *,
        category: str | None = None,
        road: PolicyRoad | None = None,
        since: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> PolicyDrop:
        """List what was dropped, by day, category, version and road, newest first.

        Counts alone: nothing of a text is kept, and no person is named. Needs the scope `read`.

        `since`: From this day (UTC) on.
        """
        ...

    @operation("POST", "/content-policy/restore")
    def restore_content_policy(
        self, *, version: int, if_match: int | None = None, idempotency_key: str | None = None
    ) -> ContentPolicy:
        """Make an older version the content policy again, as a new version. Needs the scope `write`."""
        ...

    @operation("GET", "/content-policy/topics")
    def list_content_policy_topics(self) -> PolicyTopics:
        """List the topics that the hub knows, with their words and examples. Needs the scope `read`."""
        ...

    @listing("/content-policy/versions")
    def list_content_policy_versions(self, *, page_size: int | None = None, cursor: str | None = None) -> ContentPolicy:
        """List the versions of the content policy, newest first. Needs the scope `read`."""
        ...

    @operation("POST", "/context", repeatable=True)
    def get_context(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        query: str | None = None,
        max_tokens: int | None = None,
        if_revision: str | None = None,
        include: Sequence[Include] | None = None,
        skills: bool | None = None,
        tokenizer: str | None = None,
        roles: Sequence[str] | None = None,
        limits: Limits | None = None,
        as_of: datetime | str | None = None,
        profiles: Sequence[str] | None = None,
        guidelines: bool | None = None,
        fill: Fill | None = None,
        min_score: float | None = None,
        min_evidence: EvidenceLevel | None = None,
        scores: bool | None = None,
        blocks: bool | None = None,
    ) -> Context:
        """Get what is remembered of a person, inside a token budget.

        An unknown, restricted or switched-off person gets an empty memory. Needs the scope `read`.

        `agent_id`: Whose private facts are served besides the person's own.
        `session_id`: The conversation that the agent is in, for `working_memory`.
        `query`: What the agent is about to answer: ranks facts, episodes and turns.
        `include`: By default `profile`, `facts`, `groups`, `episodes` and `turns`.
        `skills`: Also the skills that the agent is given in this session, beside the token budget.
        `tokenizer`: Of the model that reads the context, or the name of that model.
        `roles`: Roles that the person has, for guarded facts.
        `as_of`: Facts that were true then, and what had been said by then; without the profile, which is
        today's.
        `profiles`: Names of the tenant's own profiles to tell, beside those that every context tells.
        `guidelines`: Also say what an agent that writes memories should note, and what never.
        `fill`: `relevant`: what stands in every context, then only what has to do with the query. `budget`: all
        that fits.
        `min_score`: Leaves out what the query ranks lower.
        `min_evidence`: Leaves out what is weaker as evidence that it has to do with the query.
        `scores`: Show the confidence of each fact: `- [category | 0.95] …`.
        `blocks`: Also in two blocks: `stable`, what every context of the person has, and `volatile`, for the
        query.
        """
        ...

    @listing("/diary")
    def list_diary(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        last: int | None = None,
        q: str | None = None,
        topic: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> DiaryEntry:
        """Read an agent's diary about a person.

        The newest entries first. Those of other agents are not among them. Needs the scope `read`.

        `agent_id`: Whose diary, in any case; without it, that of requests that name no agent.
        `last`: Only so many entries, the newest, in one answer; not with `cursor`.
        `q`: Only entries whose text or topic has each of these words, in any case.
        `topic`: Only entries with exactly this topic.
        """
        ...

    @operation("POST", "/diary")
    def write_diary_entry(
        self,
        content: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        topic: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> StoredDiaryEntry:
        """Add an entry to an agent's diary.

        An entry is never changed. A text that speaks to a model answers 409 `review_needed` and says where;
        secrets are cut out. Needs the scope `write`.

        `content`: The note, of any number of lines.
        `agent_id`: Whose diary, in any case; without it, that of requests that name no agent.
        `topic`: What it is about.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("DELETE", "/diary/{entry_id}")
    def delete_diary_entry(self, entry_id: str) -> None:
        """Delete a diary entry.

        It goes to the trash, from which an operator can restore it. Needs the scope `write`.
        """
        ...

    @listing("/dreams")
    def list_dreams(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        status: DreamStatus | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Dream:
        """List the dreams about a person, newest first. Needs the scope `read`.

        `agent_id`: Of whose episodes and files; without it, of those without an agent.
        """
        ...

    @operation("POST", "/dreams")
    def start_dream(
        self, *, user_id: str | None, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Dream:
        """Begin a dream about a person now.

        A worker carries it out, whatever the tenant's interval. Without new episodes there is nothing to do and
        no call: 409 `nothing_new`. While a dream runs or waits for approval it answers 409 `dream_open`, and
        without a language model 409 `no_model`. Needs the scope `write`.

        `agent_id`: Of whose episodes and files; without it, of those without an agent.
        """
        ...

    @operation("GET", "/dreams/{dream_id}")
    def get_dream(self, dream_id: str) -> DreamWithEdits:
        """Get a dream with each edit that was proposed. Needs the scope `read`."""
        ...

    @operation("POST", "/dreams/{dream_id}/restore")
    def restore_dream(
        self, dream_id: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> RestoredDream:
        """Make the files what they were before a dream.

        Later dreams about the same files are taken back, too, and the episodes of all of them are new again. A
        file that somebody else changed since stays as it is and counts as `kept`; if all stay, it answers 409
        `nothing_to_restore`. For a key that writes as an agent, 409 `review_needed` where an operator took an
        edit over: it ends nothing that has more trust than itself. Needs the scope `write`.
        """
        ...

    @listing("/episodes")
    def list_episodes(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        created_since: datetime | str | None = None,
        created_until: datetime | str | None = None,
        min_importance: float | None = None,
        q: str | None = None,
        session_id: str | None = None,
        since: datetime | str | None = None,
        status: Literal["active", "pending", "trashed", "all"] | None = None,
        until: datetime | str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Episode:
        """List a person's episodes, newest first. Needs the scope `read`.

        `created_since`: Made then or later.
        `created_until`: Made before then.
        `q`: Text that the summary contains, in any case.
        `since`: Ended then or later.
        `until`: Ended before then.
        """
        ...

    @operation("GET", "/episodes/{episode_id}")
    def get_episode(self, episode_id: str) -> Episode:
        """Get an episode. Needs the scope `read`."""
        ...

    @operation("PATCH", "/episodes/{episode_id}")
    def change_episode(
        self,
        episode_id: str,
        *,
        summary: str | Unset = UNSET,
        key_topics: Sequence[str] | Unset = UNSET,
        actions_taken: Sequence[str] | Unset = UNSET,
        outcomes: Sequence[str] | Unset = UNSET,
        importance: float | Unset = UNSET,
        pinned: bool | Unset = UNSET,
        expires_at: datetime | str | Unset | None = UNSET,
        if_match: int | None = None,
    ) -> Episode:
        """Change the named fields of an episode.

        One that an operator edited or pinned answers 409 `operator_word`. New words that speak to a model
        answer 409 `review_needed`; so do those of a key that writes as an agent. Needs the scope `write`.
        """
        ...

    @operation("DELETE", "/episodes/{episode_id}")
    def delete_episode(
        self,
        episode_id: str,
        *,
        agent_id: str | None = None,
        hard: bool | None = None,
        roles: Sequence[str] | None = None,
        if_match: int | None = None,
    ) -> None:
        """Forget an episode.

        It goes to the trash. No other episode is made of the same turns. Needs the scope `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `hard`: Leave no text, not even in the trash.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @listing("/extractions")
    def list_extractions(
        self,
        *,
        user_id: str | None = None,
        status: RunStatus | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Extraction:
        """List extraction runs, newest first. Needs the scope `read`."""
        ...

    @operation("GET", "/extractions/{run_id}")
    def get_extraction(self, run_id: str) -> Extraction:
        """Get an extraction run: range, outcome, refusals, tokens; no content. Needs the scope `read`."""
        ...

    @operation("POST", "/extractions/{run_id}/retry")
    def retry_extraction(self, run_id: str, *, idempotency_key: str | None = None) -> Retry:
        """Try a failed or parked batch again now. Needs the scope `write`."""
        ...

    @operation("POST", "/extractions/preview")
    def preview_extraction(
        self,
        *,
        user_id: str | None,
        session_id: str | None = None,
        agent_id: str | None = None,
        messages: Sequence[NewMessage] | None = None,
        after: int | None = None,
        model: str | None = None,
        guidance: str | None = None,
        ask: bool | None = None,
    ) -> Preview:
        """Try extraction: the exact prompt, and what would become of the answer.

        Of a session or of given messages, with another model or guidance. Nothing is stored but the tokens, for
        the daily caps, and an event of the audit trail without any text. A failing model is a part of the
        answer. Needs `read`, too. Needs the scope `write`.

        `session_id`: Of a stored session; or give `messages`.
        `agent_id`: Lower-cased; a session of another agent is another session.
        `messages`: As of POST /turns. They are not stored, and the person need not exist.
        `after`: Of a session: the batch begins beyond this turn. Absent: what waits, else the first.
        `model`: Another model at the endpoint of the tenant's calls. Absent: theirs.
        `guidance`: In the place of the tenant's and the agent's guidance. Absent: theirs.
        `ask`: Ask the model. false: the prompt alone, which costs nothing.
        """
        ...

    @listing("/facts")
    def list_facts(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        as_of: datetime | str | None = None,
        category: Category | None = None,
        created_since: datetime | str | None = None,
        created_until: datetime | str | None = None,
        external_id: str | None = None,
        key: str | None = None,
        min_confidence: float | None = None,
        min_importance: float | None = None,
        pinned: bool | None = None,
        q: str | None = None,
        roles: Sequence[str] | None = None,
        scope: FactScope | None = None,
        since: datetime | str | None = None,
        sort: FactOrder | None = None,
        source: FactSource | None = None,
        status: FactFilterStatus | None = None,
        tag: str | None = None,
        trust: Trust | None = None,
        type: FactType | None = None,
        until: datetime | str | None = None,
        updated_since: datetime | str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Fact:
        """List a person's facts, newest first unless sorted otherwise. Needs the scope `read`.

        `agent_id`: Facts of this agent alone, its private ones among them.
        `as_of`: What was true then, also if it has ended since; `status` narrows it.
        `created_since`: Facts that arrived then or later.
        `created_until`: Facts that arrived before then.
        `external_id`: Your own id of the fact.
        `q`: Text in the content, the quote or the structured data.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        `since`: First observed then or later.
        `sort`: `-` for the highest or latest first.
        `type`: The type that the category has.
        `until`: First observed before then.
        `updated_since`: Facts that changed then or later.
        """
        ...

    @operation("POST", "/facts")
    def add_fact(
        self,
        *,
        user_id: str | None,
        content: str,
        category: Category,
        external_id: str | None = None,
        confidence: float | None = None,
        importance: float | None = None,
        key: str | None = None,
        value: str | None = None,
        tags: Sequence[str] | None = None,
        scope: StatedScope | None = None,
        agent_id: str | None = None,
        allowed_users: Sequence[str] | None = None,
        allowed_roles: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
        structured: dict[str, Any] | None = None,
        stated_by: StatedBy | None = None,
        source: StatedSource | None = None,
        raw: str | None = None,
        evidence: Sequence[str] | None = None,
        relations: Sequence[StatedRelation] | None = None,
        valid_from: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """State a fact.

        By a key that writes as the user it is active at once. It is `pending`, and served nowhere, until an
        operator approves it when an agent or a tool states it, when it speaks to a model, or when it
        contradicts what it may not replace. The same text again is a 409 that names the known fact. The same
        value for a key in other words confirms the known fact: 200. Needs the scope `write`.

        `external_id`: Your own id. Each live fact of an agent has another.
        `key`: E.g. home_city.
        `allowed_users`: Ids of the person: who asks by another of theirs gets no such fact.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        `raw`: The quote that it rests on. With evidence, one of the cited turns has to say it.
        `evidence`: Ids of turns of the person.
        `valid_from`: Since when it holds; not in the future.
        """
        ...

    @operation("GET", "/facts/{fact_id}")
    def get_fact(self, fact_id: str, *, agent_id: str | None = None, roles: Sequence[str] | None = None) -> Fact:
        """Get a fact. Needs the scope `read`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("PATCH", "/facts/{fact_id}", query=("agent_id", "roles"), named={"to_agent": "agent_id"})
    def change_fact(
        self,
        fact_id: str,
        *,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        external_id: str | Unset | None = UNSET,
        confidence: float | Unset = UNSET,
        importance: float | Unset = UNSET,
        key: str | Unset | None = UNSET,
        value: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        scope: StatedScope | Unset = UNSET,
        to_agent: str | Unset | None = UNSET,
        allowed_users: Sequence[str] | Unset = UNSET,
        allowed_roles: Sequence[str] | Unset = UNSET,
        expires_at: datetime | str | Unset | None = UNSET,
        structured: dict[str, Any] | Unset | None = UNSET,
        stated_by: StatedBy | Unset = UNSET,
        source: StatedSource | Unset = UNSET,
        raw: str | Unset | None = UNSET,
        evidence: Sequence[str] | Unset = UNSET,
        relations: Sequence[StatedRelation] | Unset = UNSET,
        valid_from: datetime | str | Unset | None = UNSET,
        content: str | Unset = UNSET,
        category: Category | Unset = UNSET,
        pinned: bool | Unset = UNSET,
        locked: bool | Unset = UNSET,
        if_match: int | None = None,
    ) -> Fact:
        """Change the named fields of a fact.

        A fact that an operator corrected, pinned or locked answers 409 `operator_word`. One that a key locked
        answers 409 `locked`, unless the change lifts the lock. A text that speaks to a model answers 409
        `review_needed`; so does a key that writes as an agent on what the user said, or on what is served.
        Needs the scope `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        `external_id`: Your own id. Each live fact of an agent has another.
        `key`: E.g. home_city.
        `allowed_users`: Ids of the person: who asks by another of theirs gets no such fact.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        `raw`: The quote that it rests on. With evidence, one of the cited turns has to say it.
        `evidence`: Ids of turns of the person.
        `valid_from`: Since when it holds; not in the future.
        """
        ...

    @operation("DELETE", "/facts/{fact_id}")
    def delete_fact(
        self,
        fact_id: str,
        *,
        agent_id: str | None = None,
        hard: bool | None = None,
        roles: Sequence[str] | None = None,
        if_match: int | None = None,
    ) -> None:
        """Forget a fact.

        It goes to the trash, and what it says is not taken from a conversation again. A key that writes as an
        agent gets 409 `review_needed` where it may not change the fact, unless it stated it itself. `X-Memory-
        Still-Said`: how many of the person's turns still say it. Needs the scope `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `hard`: Leave no text, not even in the trash.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/facts/{fact_id}/feedback", query=("agent_id", "roles"))
    def give_fact_feedback(
        self,
        fact_id: str,
        *,
        useful: bool,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Say whether a fact helped.

        A useful one counts as confirmed now and matters more (importance + 0.05), another matters less (− 0.1).
        What an operator corrected, pinned or locked stays as it is. A key that writes as an agent gets 409
        `review_needed` where it says that a fact of more trust did not help. Needs the scope `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @listing("/facts/{fact_id}/history")
    def list_fact_history(
        self,
        fact_id: str,
        *,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Revision:
        """List a fact's versions, newest first. Needs the scope `read`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/facts/{fact_id}/restore", query=("agent_id", "roles"))
    def restore_fact(
        self,
        fact_id: str,
        *,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        version: int | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Bring a fact back from the trash, or to what it said in an earlier version.

        What a key may not make of a fact by changing it answers 409 `review_needed` here, too. Needs the scope
        `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/facts/delete")
    def delete_facts(
        self,
        *,
        user_id: str | None,
        category: Category | None = None,
        status: FactFilterStatus | None = None,
        type: FactType | None = None,
        key: str | None = None,
        scope: FactScope | None = None,
        source: FactSource | None = None,
        trust: Trust | None = None,
        external_id: str | None = None,
        min_confidence: float | None = None,
        min_importance: float | None = None,
        pinned: bool | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        created_since: datetime | str | None = None,
        created_until: datetime | str | None = None,
        updated_since: datetime | str | None = None,
        tag: str | None = None,
        q: str | None = None,
        agent_id: str | None = None,
        roles: str | None = None,
        as_of: datetime | str | None = None,
        dry_run: bool | None = None,
        token: str | None = None,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Forget all facts that filters select.

        First a dry run, which answers how many and a token; then the same with the token. When other facts are
        selected by then, or one of them has changed, the answer is 409 and nothing is deleted. At most 1,000
        facts. They go to the trash and are refused, as by DELETE /facts/{id}. Needs the scope `write`.

        `type`: The type that the category has.
        `external_id`: Your own id of the fact.
        `since`: First observed then or later.
        `until`: First observed before then.
        `created_since`: Facts that arrived then or later.
        `created_until`: Facts that arrived before then.
        `updated_since`: Facts that changed then or later.
        `q`: Text in the content, the quote or the structured data.
        `agent_id`: Facts of this agent alone, its private ones among them.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        `as_of`: What was true then, also if it has ended since; `status` narrows it.
        `dry_run`: Only look: nothing is deleted.
        `token`: Of the dry run. Needed to delete.
        """
        ...

    @listing("/files")
    def list_files(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        path: str | None = None,
        session_id: str | None = None,
    ) -> FileEntry:
        """List a folder of a person's memory files.

        Its files and folders, without what is in these, by path: all in one answer. Empty for a folder that
        does not exist. Needs the scope `read`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `path`: A folder, with or without a slash at its end.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @operation("DELETE", "/files")
    def delete_file(
        self, path: str, *, user_id: str | None, agent_id: str | None = None, if_match: int | None = None
    ) -> FilesDeleted:
        """Delete a file, or a folder with all that is in it.

        A deleted file can be restored until it leaves the trash. One that an operator locked answers 409
        `operator_word`, and then nothing is deleted. Needs the scope `write`.

        `path`: A file, or a folder with all that is in it.
        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        """
        ...

    @operation("GET", "/files/content")
    def read_file(
        self,
        path: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        limit: int | None = None,
        offset: int | None = None,
        session_id: str | None = None,
    ) -> FileContent:
        """Read lines of a file.

        A file that is no text is given whole, in base64. An offset beyond the end answers 400
        `offset_beyond_end` with `total_lines`. Needs the scope `read`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `limit`: Lines to return.
        `offset`: Lines to pass over.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @operation("PUT", "/files/content")
    def write_file(
        self,
        path: str,
        content: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        stated_by: StatedBy | None = None,
        if_match: int | None = None,
    ) -> StoredFile:
        """Write a file.

        It is made, or gets this content. `If-Match` names the version that you read; `"0"`: there is none yet.
        Secrets are cut out. One that an operator locked answers 409 `operator_word`; a text that speaks to a
        model answers 409 `review_needed` and says where. Needs the scope `write`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("POST", "/files/download", repeatable=True)
    def download_files(
        self, paths: Sequence[str], *, user_id: str | None, agent_id: str | None = None, session_id: str | None = None
    ) -> Downloaded:
        """Read many files.

        Each whole, in this order; what is no UTF-8 is base64. What is wrong with one is its `error`. Needs the
        scope `read`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @operation("POST", "/files/edit")
    def edit_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        replace_all: bool | None = None,
        stated_by: StatedBy | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> StoredFile:
        """Replace a text in a file.

        A text that is not there answers 404 `text_not_found`; `newline_only` says that it is the end of the
        file but for its last newline. One that is there more than once answers 409 `text_not_unique` with
        `occurrences`, unless `replace_all` is set. Needs the scope `write`.

        `old_string`: The exact text to replace.
        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `replace_all`: Every occurrence; without it there must be exactly one.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("POST", "/files/glob", repeatable=True)
    def glob_files(
        self,
        pattern: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        path: str | None = None,
    ) -> FoundFiles:
        """Find files by a pattern.

        Without a slash the pattern is for names at any depth, with one for paths below `path`; a slash at its
        beginning only anchors it. `**` crosses folders, `{a,b}` `[!a]` `?` and `*` are known, and names with a
        dot at their beginning match a part that has it, too. Files only, the newest first. Needs the scope
        `read`.

        `pattern`: Like `*.md` or `notes/**/*.md`.
        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        `path`: The folder that is searched, or one file.
        """
        ...

    @operation("POST", "/files/grep", repeatable=True)
    def grep_files(
        self,
        pattern: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        path: str | None = None,
        glob: str | None = None,
        max_count: int | None = None,
    ) -> FoundLines:
        """Find lines by their text.

        The pattern is text as it is. Files that are no text are passed over. Needs the scope `read`.

        `pattern`: Text as it is: no regular expression.
        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        `path`: The folder that is searched, or one file.
        `glob`: Only files that match.
        `max_count`: At most so many lines.
        """
        ...

    @listing("/files/history")
    def list_file_history(
        self,
        path: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> FileVersion:
        """List a file's versions, newest first.

        Also of a deleted file, until it leaves the trash. Needs the scope `read`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        """
        ...

    @operation("POST", "/files/restore")
    def restore_file(
        self,
        path: str,
        *,
        user_id: str | None,
        version: int,
        agent_id: str | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> StoredFile:
        """Give a file the content of an earlier version.

        Also a deleted one, until it leaves the trash. Needs the scope `write`.

        `version`: The version whose content it gets again.
        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        """
        ...

    @operation("POST", "/files/upload")
    def upload_files(
        self,
        files: Sequence[FileToUpload],
        *,
        user_id: str | None,
        agent_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> Uploaded:
        """Store many files.

        Each by itself, in this order: what is wrong with one is its `error`. At most 200 files. Needs the scope
        `write`.

        `agent_id`: Whose files: those of this agent; without it, those of requests that name none.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @listing("/graph/entities")
    def list_entity_triples(
        self,
        *,
        user_id: str | None,
        name: str,
        agent_id: str | None = None,
        as_of: datetime | str | None = None,
        direction: Direction | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """List what holds of an entity. Needs the scope `read`.

        `agent_id`: The agent that asks: its private triples are shown, too.
        `as_of`: Only what holds then. Without it all, each marked active, historical or future.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/graph/invalidate")
    def invalidate_triple(
        self,
        *,
        user_id: str | None,
        subject: str,
        predicate: str,
        object: str,
        agent_id: str | None = None,
        ended: datetime | str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> EndedTriples:
        """End what holds no longer.

        The open triples of this relation hold until before `ended`. Sent again it ends nothing. A triple of a
        fact answers 409 `of_fact`: change the fact. Needs the scope `write`.

        `subject`: `user`, or the person's id or name, is the person.
        `predicate`: `Works at` is `works_at`.
        `agent_id`: Whose triple it is; left out: the person's own, for all agents.
        `ended`: It held until before this; left out: now.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @listing("/graph/relations")
    def list_relation_triples(
        self,
        *,
        user_id: str | None,
        predicate: str,
        agent_id: str | None = None,
        as_of: datetime | str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """List the triples of a predicate. Needs the scope `read`.

        `agent_id`: The agent that asks: its private triples are shown, too.
        `as_of`: Only what holds then. Without it all, each marked active, historical or future.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("GET", "/graph/stats")
    def get_graph_stats(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        as_of: datetime | str | None = None,
        roles: Sequence[str] | None = None,
    ) -> GraphStats:
        """Count a graph. Needs the scope `read`.

        `as_of`: Counted as of then.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/graph/supersede")
    def supersede_triple(
        self,
        *,
        user_id: str | None,
        subject: str,
        predicate: str,
        old_object: str,
        new_object: str,
        agent_id: str | None = None,
        at: datetime | str | None = None,
        confidence: float | None = None,
        object_type: str | None = None,
        turn_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> Triple:
        """Replace what holds by something else.

        At one moment the old triple ends and the new one begins: both, or neither. Sent again, or done before,
        it answers the new one: 200. When none is open any more the answer is 409. What would have to wait for
        an operator replaces nothing: 409 `review_needed`. Needs the scope `write`.

        `subject`: `user`, or the person's id or name, is the person.
        `predicate`: `Works at` is `works_at`.
        `agent_id`: Whose triple it is; left out: the person's own, for all agents.
        `at`: The old ends and the new begins here; left out: now.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @listing("/graph/timeline")
    def list_graph_timeline(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        as_of: datetime | str | None = None,
        entity: str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """List triples from the first to the last.

        Ordered by `valid_from`; what has none stands where it was stored. Needs the scope `read`.

        `agent_id`: The agent that asks: its private triples are shown, too.
        `as_of`: Only what holds then. Without it all, each marked active, historical or future.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/graph/triples")
    def add_triple(
        self,
        *,
        user_id: str | None,
        subject: str,
        predicate: str,
        object: str,
        agent_id: str | None = None,
        valid_from: datetime | str | None = None,
        valid_to: datetime | str | None = None,
        confidence: float | None = None,
        subject_type: str | None = None,
        object_type: str | None = None,
        turn_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> Triple:
        """State a triple.

        The same relation that still holds, or has this very interval, is answered itself: 200. By a key that
        writes as the user it is served at once. It is `pending`, and served nowhere, until an operator approves
        it when an agent or a tool states it, or when it speaks to a model. An end before the start is a 400.
        Needs the scope `write`.

        `subject`: `user`, or the person's id or name, is the person.
        `predicate`: `Works at` is `works_at`.
        `agent_id`: Whose triple it is; left out: the person's own, for all agents.
        `valid_from`: Left out: not known since when.
        `valid_to`: It holds until before this; left out: still.
        `subject_type`: Such as person or place.
        `turn_id`: The turn that says so. It can only lower the trust.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @listing("/groups")
    def list_groups(
        self, *, user_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Group:
        """List groups.

        All of the tenant's; with `user_id` those of which this person is a member. Needs the scope `read`.

        `user_id`: Only groups of which this person is a member.
        """
        ...

    @operation("POST", "/groups")
    def add_group(self, name: str, *, kind: GroupKind | None = None, idempotency_key: str | None = None) -> Group:
        """Make a group.

        A team, a project, a household or another one; it has no members yet. Needs the scope `write`.

        `name`: Contexts show it: “What the group … knows”.
        """
        ...

    @operation("GET", "/groups/{group_id}")
    def get_group(self, group_id: str) -> Group:
        """Get a group. Needs the scope `read`."""
        ...

    @operation("PATCH", "/groups/{group_id}")
    def change_group(self, group_id: str, *, name: str | Unset = UNSET, kind: GroupKind | Unset = UNSET) -> Group:
        """Give a group another name or kind. Needs the scope `write`."""
        ...

    @operation("DELETE", "/groups/{group_id}")
    def delete_group(self, group_id: str) -> None:
        """Delete a group.

        It goes to the trash with its members and facts: from now on nobody's agents are told of it. An operator
        can restore it. 423 while somebody with data in it is restricted; 409 `review_needed` for a key that
        writes as an agent where members said something in it. Needs the scope `write`.
        """
        ...

    @listing("/groups/{group_id}/facts")
    def list_group_facts(self, group_id: str, *, page_size: int | None = None, cursor: str | None = None) -> GroupFact:
        """List what a group knows, what was said last first. Needs the scope `read`."""
        ...

    @operation("POST", "/groups/{group_id}/facts")
    def add_group_fact(
        self,
        group_id: str,
        content: str,
        *,
        user_id: str | None,
        about_user_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> StoredGroupFact:
        """State a fact of a group, as one of its members.

        The agents of all members are told it. What the group knows already rests on this member, too: 200. A
        text that speaks to a model or may hold a secret, and what an agent or a tool states, answers 409
        `review_needed`. Somebody who is no member answers 409 `not_a_member`, one who may only read
        `read_only_member`. Needs the scope `write`.

        `content`: In words that are clear to the other members, with names.
        `user_id`: The member who says it.
        `about_user_id`: The member whom it is about. It is erased with that person.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("DELETE", "/groups/{group_id}/facts/{fact_id}")
    def delete_group_fact(self, group_id: str, fact_id: str, *, user_id: str | None = None) -> None:
        """Delete a fact of a group, or withdraw what one member said.

        With `user_id`, and with a key for one person, the fact stays if others said it, too. Else it goes to
        the trash, from which an operator can restore it. A key that writes as an agent gets 409 `review_needed`
        for what a member said. Needs the scope `write`.

        `user_id`: Only withdraw what this member said. Without it the fact goes, whoever said it.
        """
        ...

    @listing("/groups/{group_id}/members")
    def list_group_members(
        self, group_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> GroupMember:
        """List the members of a group, the first to join first. Needs the scope `read`."""
        ...

    @operation("PUT", "/groups/{group_id}/members")
    def set_group_member(self, group_id: str, *, user_id: str | None, may_write: bool | None = None) -> GroupMember:
        """Add a member, or say whether one may write.

        From now on the person's agents are told what the group knows. The same again changes nothing. Needs the
        scope `write`.

        `may_write`: Whether facts can be stated as theirs.
        """
        ...

    @operation("DELETE", "/groups/{group_id}/members")
    def remove_group_member(self, group_id: str, *, user_id: str | None) -> None:
        """Let a member leave a group.

        Their agents are told nothing of it from now on. What they said there stays. Needs the scope `write`.
        """
        ...

    @listing("/imports")
    def list_imports(
        self, *, status: ImportStatus | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Import:
        """List the imports, newest first. Needs the scope `read`."""
        ...

    @operation("POST", "/imports", raw="file")
    def create_import(
        self,
        file: bytes,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        authors: dict[str, str | None] | None = None,
        dry_run: bool | None = None,
        folder: str | None = None,
        form: Literal["facts", "items"] | None = None,
        name: str | None = None,
        namespace: str | None = None,
        source: ImportSource | None = None,
        time_zone: str | None = None,
    ) -> Import:
        """Upload a file, and import what people have elsewhere.

        The body is the file, or a form with the part `file`: an export as it comes. A worker reads it; ask for
        the import until it is `done`. With `dry_run` it says what it would do and is `checked`: `resume` starts
        it within a day. The key has the scope `ingest`, too. A file can be sent again: each message, memory,
        file and item is stored once. Needs the scope `write`.

        `user_id`: Whose those are that name nobody.
        `agent_id`: The agent of conversations and files.
        `authors`: A JSON object: who is named in the file → the `user_id` they become.
        `dry_run`: Say what the import would do; `resume` starts it.
        `folder`: Of files: the folder that they go to.
        `form`: Of LangGraph's store: what its items become.
        `name`: What the file is called.
        `namespace`: As `--namespace` of the command.
        `source`: Without it the source is recognised.
        `time_zone`: Of times that name none.
        """
        ...

    @operation("GET", "/imports/{import_id}")
    def get_import(self, import_id: str) -> Import:
        """Get an import: where it stands, and what came of it. Needs the scope `read`."""
        ...

    @operation("POST", "/imports/{import_id}/pause")
    def pause_import(self, import_id: str, *, idempotency_key: str | None = None) -> Import:
        """Let an import rest. What is stored stays. `resume` goes on within a day. Needs the scope `write`."""
        ...

    @operation("POST", "/imports/{import_id}/resume")
    def resume_import(
        self,
        import_id: str,
        *,
        user_id: str | None = None,
        authors: dict[str, str | None] | None = None,
        idempotency_key: str | None = None,
    ) -> Import:
        """Start an import that was checked, or go on with one that rests.

        Also after a failure, while the hub has the file. The key has the scope `ingest`, too. Before it has
        begun `user_id` and `authors` can be said anew. Needs the scope `write`.
        """
        ...

    @operation("POST", "/imports/{import_id}/undo")
    def undo_import(self, import_id: str, *, idempotency_key: str | None = None) -> Import:
        """Take an import back.

        A worker deletes what the import stored: messages with what was made of them, facts, files, items, and
        people whom it made if nothing else is there of them. What somebody changed since stays, and counts as
        `kept`. The same file can be imported again. Needs the scope `write`.
        """
        ...

    @operation("GET", "/memory")
    def get_memory(
        self, *, user_id: str | None, agent_id: str | None = None, roles: Sequence[str] | None = None
    ) -> MemoryDocument:
        """Get a person's memory as one document.

        In the shape of DeerFlow's memory.json: the profile, and the active facts, the surest first. Needs the
        scope `read`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("PUT", "/memory", query=("agent_id", "roles", "user_id"), document="document")
    def put_memory(
        self,
        document: MemoryDocument,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        stated_by: StatedBy | None = None,
    ) -> StoredDocument:
        """Take a memory document in.

        Its sections are written, its facts added or, where the hub knows the `id`, changed. What it leaves out
        stays, and so does what an operator wrote. What speaks to a model, and what an agent or a tool states,
        waits for an operator; `pending` counts it. All or nothing: 409 `capacity` when a fact would be archived
        at once. Needs the scope `write`.

        `user_id`: Here or in the body.
        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("DELETE", "/memory")
    def clear_memory(
        self, *, user_id: str | None, agent_id: str | None = None, roles: Sequence[str] | None = None
    ) -> MemoryDocument:
        """Clear a person's memory.

        Moves facts, episodes, memory files, diary entries and what the person stated in groups to the trash and
        empties the profile; with `agent_id`, only what is that agent's. What an operator wrote stays, and so do
        turns, and what other members stated, too. A key that writes as an agent clears nothing, and gets 409
        `review_needed`, where something of it is not its to end. Answers the document as it is afterwards.
        Needs the scope `write`.

        `agent_id`: The agent that asks: its private facts are seen, too.
        `roles`: Roles that the person has, for guarded facts: separated by commas, or given several times.
        """
        ...

    @operation("POST", "/person-links")
    def person_link(
        self,
        *,
        user_id: str | None,
        ttl: int | None = None,
        language: ContextLanguage | None = None,
        allow: Sequence[PersonAct] | None = None,
        embed_origins: Sequence[str] | None = None,
    ) -> PersonLink:
        """Make a link with which a person opens the page of their own memory, once.

        The tenant switches the page on, and says what people may do there. The application makes sure who gets
        the link. Needs the scope `write`.

        `ttl`: For how many seconds the link can be opened, once.
        `language`: Of the page; without it the browser's.
        `allow`: What the person may do there, beside seeing; without it all that the tenant allows.
        `embed_origins`: Origins of the sites that may show the page in a frame, like https://app.example.org.
        """
        ...

    @operation("POST", "/privacy/requests")
    def create_privacy_request(
        self,
        *,
        user_id: str | None,
        type: CaseType,
        channel: str | None = None,
        reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> PrivacyCase:
        """Take in what a person asks about their data.

        Opens a case. Staff check who asks, and two of them approve an erasure: no key can. Needs the scope
        `privacy`.
        """
        ...

    @operation("GET", "/privacy/requests/{case_id}")
    def get_privacy_request(self, case_id: str) -> PrivacyCase:
        """Get a privacy case: where it stands, when it is due, and its receipt. Needs the scope `privacy`."""
        ...

    @operation("GET", "/privacy/requests/{case_id}/export", repeatable=False)
    def take_privacy_export(self, case_id: str) -> bytes:
        """Download the export of a privacy request, once.

        The hub keeps no copy: the content goes with the answer. Needs the scope `privacy`.
        """
        ...

    @operation("GET", "/profile")
    def get_profile(self, *, user_id: str | None, agent_id: str | None = None) -> Profile:
        """Get a person's profile. Needs the scope `read`.

        `agent_id`: With it, that agent's own sections take the place of the person's.
        """
        ...

    @operation("PUT", "/profile/{section}")
    def write_profile_section(
        self,
        section: SectionName,
        *,
        user_id: str | None,
        summary: str,
        agent_id: str | None = None,
        stated_by: StatedBy | None = None,
    ) -> HeldSection | Profile:
        """Write a section of a person's profile.

        An empty summary empties the section; one that an operator wrote answers 409 `operator_word`. What
        speaks to a model, and what an agent or a tool states, is held: 202, an operator is asked, and the old
        text goes on being served. What an operator turned down answers 409 `refused`. Needs the scope `write`.

        `summary`: An empty one empties the section.
        `agent_id`: Write that agent's own section, which no other agent is told.
        `stated_by`: Whose words these are: the key's own by default. It can only lower their trust.
        """
        ...

    @operation("GET", "/profiles")
    def list_profiles(self, *, agent_id: str | None = None) -> ProfileSchemas:
        """List the profiles that the tenant defined, with their schemas. Needs the scope `read`.

        `agent_id`: With it, also what is this agent's own.
        """
        ...

    @operation("GET", "/profiles/{name}")
    def get_person_profile(self, name: str, *, user_id: str | None, agent_id: str | None = None) -> PersonProfile:
        """Get a person's profile in the form of a schema of the tenant's own.

        Read from the facts of the moment. A field that nobody stated, or whose value the schema does not allow,
        is not in the document. Needs the scope `read`.

        `agent_id`: With it, also what is this agent's own.
        """
        ...

    @operation("POST", "/search", repeatable=True)
    def search(
        self,
        *,
        user_id: str | None,
        query: str,
        kinds: Sequence[FoundKind] | None = None,
        limit: int | None = None,
        filters: Filters | None = None,
        roles: Sequence[str] | None = None,
        as_of: datetime | str | None = None,
        min_score: float | None = None,
        min_evidence: EvidenceLevel | None = None,
        explain: bool | None = None,
    ) -> Found:
        """Find what a person said, and what is remembered of them.

        Facts, episodes, turns and sessions, by meaning and by words; without vectors by words alone. Needs the
        scope `read`.

        `roles`: Roles that the person has, for guarded facts.
        `as_of`: Facts that were true then, and what had been said by then.
        `min_score`: Leaves out what scores lower. Scores mean little across queries: see `min_evidence`.
        `min_evidence`: Leaves out what is weaker as evidence that it has to do with the query.
        `explain`: Show the scores' ingredients, and how the query was read.
        """
        ...

    @listing("/sessions")
    def list_sessions(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Session:
        """List a person's sessions, newest first. Needs the scope `read`.

        `session_id`: What you call it; each agent may have one of this name.
        """
        ...

    @operation("GET", "/sessions/{session_id}")
    def get_session(self, session_id: str) -> SessionDetail:
        """Get a session with its running summary, its window and the state of its extraction.

        Needs the scope `read`.
        """
        ...

    @operation("DELETE", "/sessions/{session_id}")
    def delete_session(self, session_id: str) -> None:
        """Delete a session, its turns and the facts that rest on them alone.

        Facts that an operator made binding, or that were stated outright, stay. A key that writes as an agent
        gets 409 `review_needed` where the user spoke. Needs the scope `write`.
        """
        ...

    @listing("/sessions/{session_id}/turns")
    def list_turns(
        self,
        session_id: str,
        *,
        sort: Literal["number", "-number"] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Turn:
        """List a session's turns by number. Needs the scope `read`.

        `sort`: `-number` for the newest first.
        """
        ...

    @operation("POST", "/sessions/end")
    def end_session(
        self, *, user_id: str | None, session_id: str, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Standing:
        """End a session: what waits is extracted as soon as possible.

        A new turn reopens it. Needs the scope `ingest`.

        `agent_id`: Lower-cased; a session of another agent is another session.
        """
        ...

    @operation("POST", "/sessions/flush")
    def flush_session(
        self, *, user_id: str | None, session_id: str, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Standing:
        """Extract what waits in a session as soon as possible. Needs the scope `ingest`.

        `agent_id`: Lower-cased; a session of another agent is another session.
        """
        ...

    @listing("/skills")
    def list_skills(self, *, user_id: str | None, agent_id: str | None = None, session_id: str | None = None) -> Skill:
        """List the skills that an agent is given.

        Procedures that were made of trajectories, and reviewed by an operator. All in one answer. That the
        session was given them counts as a trial. Needs the scope `read`.

        `user_id`: For whom the agent works.
        `agent_id`: Which agent asks; without it, what every agent is given.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @operation("GET", "/skills/{name}")
    def get_skill(
        self, name: str, *, user_id: str | None, agent_id: str | None = None, session_id: str | None = None
    ) -> WholeSkill:
        """Read a skill.

        Its file and how its trials came out. One that this session is not given is not found. Needs the scope
        `read`.

        `user_id`: For whom the agent works.
        `agent_id`: Which agent asks; without it, what every agent is given.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @listing("/skills/{name}/versions")
    def list_skill_versions(
        self,
        name: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        session_id: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> SkillVersion:
        """List the versions of a skill that were in use, newest first. Needs the scope `read`.

        `user_id`: For whom the agent works.
        `agent_id`: Which agent asks; without it, what every agent is given.
        `session_id`: The conversation, as in `/turns`: which skills it is given is decided by it, and counted
        for it.
        """
        ...

    @operation("POST", "/store/batch", repeatable=True)
    def batch_store(self, *, operations: Sequence[StoreOperation]) -> StoreAnswers:
        """Do many operations of the store in one request.

        As LangGraph's stores answer a batch: first the reads, which see what was there before, then the writes,
        the last for each key, all or none. The results are in the order of the operations. Writes need the
        scope `write`, too. Needs the scope `read`.
        """
        ...

    @operation("GET", "/store/items")
    def get_store_item(self, *, key: str, namespace: str, refresh_ttl: bool | None = None) -> StoreItem | None:
        """Get an item of the store.

        An item that does not exist, or has expired, is `null`, as LangGraph's server answers it. Needs the
        scope `read`.

        `namespace`: The labels, joined by periods.
        `refresh_ttl`: Let its time to live begin anew.
        """
        ...

    @operation("PUT", "/store/items")
    def put_store_item(
        self,
        *,
        namespace: Sequence[str],
        key: str,
        value: dict[str, Any],
        index: Sequence[str] | bool | None = None,
        ttl: float | None = None,
    ) -> None:
        """Write an item of the store, in place of what is there.

        Secrets are replaced by marks, and invisible characters go. A value that speaks to a model answers 409
        `review_needed`. Needs the scope `write`.

        `namespace`: Labels without periods, at most 64 with 1,024 bytes.
        `index`: Paths of the value to embed, such as `title` or `items[*].text`; false: nothing. All of it if
        left out.
        `ttl`: Minutes until it expires, anew with each read.
        """
        ...

    @operation("DELETE", "/store/items")
    def delete_store_item(self, *, key: str, namespace: str) -> None:
        """Delete an item of the store for good.

        204 also where there is none. As LangGraph's SDK sends it, the body may name the item instead:
        `{"namespace": ["a", "b"], "key": "k"}`. Needs the scope `write`.

        `namespace`: The labels, joined by periods.
        """
        ...

    @operation("POST", "/store/items/search", repeatable=True)
    def search_store_items(
        self,
        *,
        namespace_prefix: Sequence[str],
        filter: dict[str, Any] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        query: str | None = None,
        refresh_ttl: bool | None = None,
    ) -> FoundStoreItems:
        """Find items of the store.

        With a query by meaning, exactly ranked; what has no vector comes last. Needs the scope `read`.

        `namespace_prefix`: Items of this namespace and of those below it; empty: of all.
        `filter`: Field → value, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` → value; objects look inside.
        `query`: Best first, by meaning; without it the last written first.
        `refresh_ttl`: Let times to live of what is found begin anew.
        """
        ...

    @operation("POST", "/store/namespaces", repeatable=True)
    def list_store_namespaces(
        self,
        *,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> StoreNamespaces:
        """List namespaces of the store, sorted. Needs the scope `read`.

        `prefix`: `*` stands for any one label.
        `suffix`: `*` stands for any one label.
        """
        ...

    @listing("/trajectories")
    def list_trajectories(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        family: str | None = None,
        outcome: TrajectoryOutcome | None = None,
        session_id: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Trajectory:
        """List a person's trajectories, newest first. Needs the scope `read`.

        `agent_id`: Only this agent's.
        `family`: Only those with exactly this label.
        `outcome`: Only those that came out so.
        `session_id`: Only those of this conversation.
        """
        ...

    @operation("POST", "/trajectories")
    def post_trajectory(
        self,
        *,
        user_id: str | None,
        task: str,
        steps: Sequence[NewStep] | None = None,
        outcome: TrajectoryOutcome | dict[str, Any] | None = None,
        skills: Sequence[str] | None = None,
        ended_at: datetime | str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        external_id: str | None = None,
        family: str | None = None,
        started_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> TrajectoryReceipt:
        """Store what an agent did for a task.

        Steps can come with it, or later. One whose `external_id` the person has already is answered as it is
        stored. Without an `outcome`, the exit code of the last test run says how it came out, else the person's
        next words in the session. Secrets are cut out; nothing of it becomes a fact. Needs the scope `ingest`.

        `task`: What was to be done.
        `outcome`: How it came out. Absent: as the last test run, or the person, says.
        `skills`: Names of skills that the agent followed.
        `ended_at`: When it was done: what the person says from then on is about it.
        `agent_id`: Lower-cased; null for none.
        `session_id`: Of the conversation that it was done in, as turns have it.
        `external_id`: Your own id; the person has it once.
        `family`: Your label for tasks of this kind.
        """
        ...

    @operation("GET", "/trajectories/{trajectory_id}")
    def get_trajectory(self, trajectory_id: str) -> Trajectory:
        """Get a trajectory, without its steps. Needs the scope `read`."""
        ...

    @operation("PATCH", "/trajectories/{trajectory_id}")
    def change_trajectory(
        self,
        trajectory_id: str,
        *,
        outcome: TrajectoryOutcome | dict[str, Any] | Unset | None = UNSET,
        skills: Sequence[str] | Unset = UNSET,
        ended_at: datetime | str | Unset | None = UNSET,
    ) -> Trajectory:
        """State how a task came out.

        A weaker source replaces no stronger one: `application`, then `tests`, then `person`. A key that writes
        as an agent gets 409 `review_needed` where one that writes as the user stored it. Needs the scope
        `ingest`.

        `outcome`: How it came out. Absent: as the last test run, or the person, says.
        `skills`: Names of skills that the agent followed.
        `ended_at`: When it was done: what the person says from then on is about it.
        """
        ...

    @operation("DELETE", "/trajectories/{trajectory_id}")
    def delete_trajectory(self, trajectory_id: str) -> None:
        """Delete a trajectory with its steps, for good. Needs the scope `write`."""
        ...

    @listing("/trajectories/{trajectory_id}/steps")
    def list_trajectory_steps(
        self, trajectory_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> Step:
        """List the steps of a trajectory in their order. Needs the scope `read`."""
        ...

    @operation("POST", "/trajectories/{trajectory_id}/steps")
    def post_trajectory_steps(
        self,
        trajectory_id: str,
        *,
        steps: Sequence[NewStep] | None = None,
        outcome: TrajectoryOutcome | dict[str, Any] | None = None,
        skills: Sequence[str] | None = None,
        ended_at: datetime | str | None = None,
        idempotency_key: str | None = None,
    ) -> TrajectoryReceipt:
        """Add steps to a trajectory.

        A call, or a result, whose `call_id` it has already is not stored again. Needs the scope `ingest`.

        `outcome`: How it came out. Absent: as the last test run, or the person, says.
        `skills`: Names of skills that the agent followed.
        `ended_at`: When it was done: what the person says from then on is about it.
        """
        ...

    @operation("POST", "/turns")
    def post_turns(
        self,
        *,
        user_id: str | None,
        session_id: str,
        messages: Sequence[NewMessage],
        agent_id: str | None = None,
        flush: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Receipt:
        """Store the turns of a session.

        Person and session are made on first sight. A message whose `external_id` the session already has is not
        stored again. Extraction follows in the background. Needs the scope `ingest`.

        `agent_id`: Lower-cased; a session of another agent is another session.
        `flush`: Extract as soon as possible instead of after the quiet time.
        """
        ...

    @operation("DELETE", "/turns/{turn_id}")
    def delete_turn(self, turn_id: str) -> None:
        """Delete what a turn says, and what was made of it alone.

        The turn keeps its number and a keyed hash, so that the same message is not stored again. Facts,
        episodes and sections of the profile that rest on it alone go; other facts lose this evidence. What an
        operator made binding, or was stated outright, stays. Needs the scope `write`.
        """
        ...

    @operation("POST", "/turns/{turn_id}/redact")
    def redact_turn(
        self,
        turn_id: str,
        *,
        texts: Sequence[str] | None = None,
        once: bool | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        """Delete passages of a turn, and what was made of it alone.

        Without `texts` all that it says, as DELETE does. Needs the scope `write`.

        `texts`: The passages, as the turn says them, letter by letter; each becomes `[redacted]`. Absent: all.
        `once`: 409 where all of it is gone already: of several callers one deletes it.
        """
        ...

    @operation("POST", "/turns/bulk")
    def post_turns_bulk(self, *, conversations: Sequence[Conversation], idempotency_key: str | None = None) -> Receipts:
        """Store the turns of many sessions, all or none.

        At most 5,000 messages and 10 MB together. Needs the scope `ingest`.
        """
        ...

    @listing("/users")
    def list_users(self, *, q: str | None = None, page_size: int | None = None, cursor: str | None = None) -> Person:
        """List the people, newest first. Needs the scope `read`.

        `q`: Part of the user_id or the display name, in any case.
        """
        ...

    @operation("GET", "/users/detail")
    def get_user(self, *, user_id: str | None) -> PersonDetail:
        """Get a person, with counts and what still waits. Needs the scope `read`."""
        ...

    @operation("PATCH", "/users/detail", query=("user_id",))
    def change_user(
        self,
        *,
        user_id: str | None,
        display_name: str | Unset = UNSET,
        time_zone: str | Unset = UNSET,
        language: str | Unset = UNSET,
        metadata: dict[str, Any] | Unset = UNSET,
        capture: bool | Unset = UNSET,
        serve: bool | Unset = UNSET,
    ) -> PersonDetail:
        """Change a person's record.

        What an operator switched off, of `capture` and `serve`, answers 409 `operator_word`. Needs the scope
        `write`.

        `time_zone`: IANA, e.g. Asia/Shanghai.
        `language`: BCP 47, e.g. zh-CN.
        `metadata`: Replaces the whole object.
        `capture`: false: turns are not stored.
        `serve`: false: contexts are empty.
        """
        ...
