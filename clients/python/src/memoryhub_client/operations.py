"""Every operation of the API, as `_calls` describes it. A test compares them with the hub's OpenAPI document.

`user_id=None` leaves the person out: with a key for one person it is that one. On the lists and objects of facts
`agent_id` and `roles` say who asks, and your key vouches for both.
"""
# mypy: disable-error-code="empty-body"

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from memoryhub_client._calls import UNSET, Unset, listing, operation
from memoryhub_client.models import (
    Agent,
    CaseType,
    Category,
    ContentPolicy,
    Context,
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
    PageLanguage,
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
    Standing,
    StatedBy,
    StatedRelation,
    StatedScope,
    StatedSource,
    StoreAnswers,
    StoredDiaryEntry,
    StoredDocument,
    StoredFile,
    StoredGroupFact,
    StoreItem,
    StoreNamespaces,
    StoreOperation,
    Tokenizer,
    Triple,
    Trust,
    Turn,
    Uploaded,
)

FactOrder = Literal[
    "-created_at", "created_at", "-updated_at", "updated_at", "-last_confirmed_at", "last_confirmed_at",
    "-confidence", "confidence", "-importance", "importance", "-decay_score", "decay_score",
]  # fmt: skip
Moment = datetime | str
ASKS = ("agent_id", "roles")


class Operations:
    """What a hub can be asked."""

    # Turns and sessions

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
        """Store 1 to 500 messages of a session. With an `external_id` a message is stored once, however often sent."""
        ...

    @operation("POST", "/turns/bulk")
    def post_turns_bulk(self, *, conversations: Sequence[Conversation], idempotency_key: str | None = None) -> Receipts:
        """Store up to 100 conversations with 5,000 messages: all or none."""
        ...

    @operation("DELETE", "/turns/{turn_id}")
    def delete_turn(self, turn_id: str) -> None:
        """Delete what a turn says, and what was made of it alone."""
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
        """Replace passages of a turn; without `texts` all of it. With `once` it is a `ConflictError` if all of it is
        gone already: of several callers one deletes it."""
        ...

    @operation("POST", "/sessions/flush")
    def flush_session(
        self, *, user_id: str | None, session_id: str, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Standing:
        """Extract the pending turns of a session as soon as possible."""
        ...

    @operation("POST", "/sessions/end")
    def end_session(
        self, *, user_id: str | None, session_id: str, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Standing:
        """Extract what is pending, and end the session."""
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
        """The sessions of a person, the newest first; `session_id` finds one by what you call it."""
        ...

    @operation("GET", "/sessions/{session_id}")
    def get_session(self, session_id: str) -> SessionDetail:
        """A session by the hub's id, with its running summary and its window."""
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
        """The turns of a session by number, as they were posted; `sort="-number"`: the newest first."""
        ...

    @operation("DELETE", "/sessions/{session_id}")
    def delete_session(self, session_id: str) -> None:
        """Delete a session by the hub's id, with its turns and what rests on them alone."""
        ...

    # Context and search

    @operation("POST", "/context", repeatable=True)
    def get_context(
        self,
        *,
        user_id: str | None,
        query: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        max_tokens: int | None = None,
        include: Sequence[Include] | None = None,
        limits: Limits | None = None,
        tokenizer: Tokenizer | None = None,
        roles: Sequence[str] | None = None,
        if_revision: str | None = None,
        as_of: Moment | None = None,
        guidelines: bool | None = None,
        blocks: bool | None = None,
        fill: Fill | None = None,
        min_score: float | None = None,
        min_evidence: EvidenceLevel | None = None,
        scores: bool | None = None,
        profiles: Sequence[str] | None = None,
    ) -> Context:
        """What is remembered about a person, rendered for a prompt within `max_tokens`.

        `guidelines`: also what to remember and what never, for an agent that writes memories. `blocks`: also in two
        parts, `stable` for the system prompt and `volatile` for before the newest message. `fill`: beside what stands
        in every context only what has to do with the query, or whatever there is. `scores`: facts with confidence.
        `profiles`: names of the tenant's own profiles to tell, beside those that every context tells.
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
        as_of: Moment | None = None,
        min_score: float | None = None,
        min_evidence: EvidenceLevel | None = None,
        explain: bool | None = None,
    ) -> Found:
        """What a person said and what is remembered about them, best first.

        `min_evidence`: without what is weaker as evidence that it has to do with the query.
        """
        ...

    # Facts

    @listing("/facts")
    def list_facts(
        self,
        *,
        user_id: str | None,
        status: FactFilterStatus | None = None,
        category: Category | None = None,
        type: FactType | None = None,  # noqa: A002  # the API's word
        key: str | None = None,
        tag: str | None = None,
        scope: FactScope | None = None,
        source: FactSource | None = None,
        trust: Trust | None = None,
        min_confidence: float | None = None,
        pinned: bool | None = None,
        external_id: str | None = None,
        min_importance: float | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        created_since: Moment | None = None,
        created_until: Moment | None = None,
        updated_since: Moment | None = None,
        as_of: Moment | None = None,
        q: str | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        sort: FactOrder | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Fact:
        """The facts of a person: active ones, unless `status` says otherwise."""
        ...

    @operation("POST", "/facts")
    def add_fact(
        self,
        *,
        user_id: str | None,
        content: str,
        category: Category,
        confidence: float | None = None,
        importance: float | None = None,
        key: str | None = None,
        value: str | None = None,
        tags: Sequence[str] | None = None,
        scope: StatedScope | None = None,
        agent_id: str | None = None,
        allowed_users: Sequence[str] | None = None,
        allowed_roles: Sequence[str] | None = None,
        expires_at: Moment | None = None,
        structured: dict[str, Any] | None = None,
        stated_by: StatedBy | None = None,
        source: StatedSource | None = None,
        raw: str | None = None,
        evidence: Sequence[str] | None = None,
        relations: Sequence[StatedRelation] | None = None,
        valid_from: Moment | None = None,
        external_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """State a fact. Look at its `status`: what an agent states waits for an operator."""
        ...

    @operation("POST", "/facts/delete")
    def delete_facts(
        self,
        *,
        user_id: str | None,
        dry_run: bool | None = None,
        token: str | None = None,
        status: FactFilterStatus | None = None,
        category: Category | None = None,
        type: FactType | None = None,  # noqa: A002  # the API's word
        key: str | None = None,
        tag: str | None = None,
        scope: FactScope | None = None,
        source: FactSource | None = None,
        trust: Trust | None = None,
        min_confidence: float | None = None,
        pinned: bool | None = None,
        external_id: str | None = None,
        min_importance: float | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        created_since: Moment | None = None,
        created_until: Moment | None = None,
        updated_since: Moment | None = None,
        as_of: Moment | None = None,
        q: str | None = None,
        agent_id: str | None = None,
        roles: str | None = None,
        idempotency_key: str | None = None,
    ) -> Deleted:
        """Forget what filters select: first with `dry_run`, then with the `token` of its answer."""
        ...

    @operation("GET", "/facts/{fact_id}")
    def get_fact(self, fact_id: str, *, agent_id: str | None = None, roles: Sequence[str] | None = None) -> Fact:
        """One fact, whatever its status."""
        ...

    @operation("PATCH", "/facts/{fact_id}", query=ASKS, named={"to_agent": "agent_id"})
    def change_fact(
        self,
        fact_id: str,
        *,
        content: str | Unset = UNSET,
        category: Category | Unset = UNSET,
        confidence: float | Unset = UNSET,
        importance: float | Unset = UNSET,
        key: str | Unset | None = UNSET,
        value: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        scope: StatedScope | Unset = UNSET,
        to_agent: str | Unset | None = UNSET,
        allowed_users: Sequence[str] | Unset = UNSET,
        allowed_roles: Sequence[str] | Unset = UNSET,
        expires_at: Moment | Unset | None = UNSET,
        structured: dict[str, Any] | Unset | None = UNSET,
        external_id: str | Unset | None = UNSET,
        raw: str | Unset | None = UNSET,
        source: StatedSource | Unset = UNSET,
        evidence: Sequence[str] | Unset = UNSET,
        relations: Sequence[StatedRelation] | Unset = UNSET,
        valid_from: Moment | Unset | None = UNSET,
        stated_by: StatedBy | Unset = UNSET,
        pinned: bool | Unset = UNSET,
        locked: bool | Unset = UNSET,
        if_match: int | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> Fact:
        """Change the named fields; None empties one. `if_match` is the version that you saw."""
        ...

    @operation("DELETE", "/facts/{fact_id}")
    def delete_fact(
        self,
        fact_id: str,
        *,
        hard: bool | None = None,
        if_match: int | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> None:
        """Move a fact to the trash; with `hard` no text of it stays."""
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
        """The versions of a fact."""
        ...

    @operation("POST", "/facts/{fact_id}/restore", query=ASKS)
    def restore_fact(
        self,
        fact_id: str,
        *,
        version: int | None = None,
        if_match: int | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Restore a fact from the trash, or to a version."""
        ...

    @operation("POST", "/facts/{fact_id}/feedback", query=ASKS)
    def give_fact_feedback(
        self,
        fact_id: str,
        *,
        useful: bool,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        idempotency_key: str | None = None,
    ) -> Fact:
        """Say whether the fact helped the agent that it was served to."""
        ...

    # Memory documents

    @operation("GET", "/memory")
    def get_memory(
        self, *, user_id: str | None, agent_id: str | None = None, roles: Sequence[str] | None = None
    ) -> MemoryDocument:
        """One person's memory as one document."""
        ...

    @operation("PUT", "/memory", query=("user_id", *ASKS), document="document")
    def put_memory(
        self,
        document: MemoryDocument,
        *,
        user_id: str | None,
        stated_by: StatedBy | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> StoredDocument:
        """Take a memory document in. What it leaves out stays as it is."""
        ...

    @operation("DELETE", "/memory")
    def clear_memory(
        self, *, user_id: str | None, agent_id: str | None = None, roles: Sequence[str] | None = None
    ) -> MemoryDocument:
        """Move the person's facts and episodes to the trash and empty the profile. Turns stay."""
        ...

    # Episodes and profile

    @listing("/episodes")
    def list_episodes(
        self,
        *,
        user_id: str | None,
        status: Literal["active", "pending", "trashed", "all"] | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        min_importance: float | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        created_since: Moment | None = None,
        created_until: Moment | None = None,
        q: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Episode:
        """The episodes of a person; the one that ended last comes first."""
        ...

    @operation("GET", "/episodes/{episode_id}")
    def get_episode(self, episode_id: str) -> Episode:
        """One episode, whatever its status."""
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
        expires_at: Moment | Unset | None = UNSET,
        if_match: int | None = None,
    ) -> Episode:
        """Change the named fields. `if_match` is the version that you saw."""
        ...

    @operation("DELETE", "/episodes/{episode_id}")
    def delete_episode(
        self,
        episode_id: str,
        *,
        hard: bool | None = None,
        if_match: int | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> None:
        """Move an episode to the trash; with `hard` no text of it stays."""
        ...

    @operation("GET", "/profile")
    def get_profile(self, *, user_id: str | None, agent_id: str | None = None) -> Profile:
        """Six summaries about a person."""
        ...

    @operation("GET", "/profiles")
    def list_profiles(self, *, agent_id: str | None = None) -> ProfileSchemas:
        """The profiles that the tenant defined by schemas of its own; with `agent_id` those that this agent has."""
        ...

    @operation("GET", "/profiles/{name}")
    def get_person_profile(self, name: str, *, user_id: str | None, agent_id: str | None = None) -> PersonProfile:
        """What is known of a person in the form of a schema of the tenant's own, with the turns that say it."""
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
        """Write a section. A `HeldSection` says that the text waits for an operator."""
        ...

    # Memory files: of a person and an agent, or of a person alone

    @listing("/files")
    def list_files(self, *, user_id: str | None, agent_id: str | None = None, path: str | None = None) -> FileEntry:
        """The files and folders of a folder, by path."""
        ...

    @operation("GET", "/files/content")
    def read_file(
        self,
        path: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        offset: int | None = None,
        limit: int | None = None,
    ) -> FileContent:
        """Lines of a file: `limit` of them after the first `offset`."""
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
        """Make a file, or give it this content. `if_match` is the version that you read; 0: there is none yet."""
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
        """Replace a text that stands in the file once, or everywhere. How often it does is in the problem document."""
        ...

    @operation("POST", "/files/glob", repeatable=True)
    def glob_files(
        self, pattern: str, *, user_id: str | None, agent_id: str | None = None, path: str | None = None
    ) -> FoundFiles:
        """Files by a pattern like `*.md` or `notes/**/*.md`."""
        ...

    @operation("POST", "/files/grep", repeatable=True)
    def grep_files(
        self,
        pattern: str,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        path: str | None = None,
        glob: str | None = None,
        max_count: int | None = None,
    ) -> FoundLines:
        """Lines that contain a text as it is."""
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
        """Store up to 200 files, each by itself."""
        ...

    @operation("POST", "/files/download", repeatable=True)
    def download_files(self, paths: Sequence[str], *, user_id: str | None, agent_id: str | None = None) -> Downloaded:
        """Up to 200 files as a whole."""
        ...

    @operation("DELETE", "/files")
    def delete_file(
        self, path: str, *, user_id: str | None, agent_id: str | None = None, if_match: int | None = None
    ) -> FilesDeleted:
        """Delete a file, or a folder with all that is in it."""
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
        """The versions of a file, the newest first."""
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
        """The dreams about a person, the newest first."""
        ...

    @operation("POST", "/dreams")
    def start_dream(
        self, *, user_id: str | None, agent_id: str | None = None, idempotency_key: str | None = None
    ) -> Dream:
        """Begin a dream about a person now; a worker carries it out."""
        ...

    @operation("GET", "/dreams/{dream_id}")
    def get_dream(self, dream_id: str) -> DreamWithEdits:
        """A dream with each edit that was proposed."""
        ...

    @operation("POST", "/dreams/{dream_id}/restore")
    def restore_dream(
        self, dream_id: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> RestoredDream:
        """Make the files what they were before a dream; `kept` says how many stayed."""
        ...

    @listing("/imports")
    def list_imports(
        self, *, status: ImportStatus | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Import:
        """The imports, the newest first."""
        ...

    @operation("POST", "/imports", raw="file")
    def create_import(
        self,
        file: bytes,
        *,
        user_id: str | None = None,
        source: ImportSource | None = None,
        agent_id: str | None = None,
        authors: dict[str, str | None] | None = None,
        dry_run: bool | None = None,
        form: Literal["facts", "items"] | None = None,
        namespace: str | None = None,
        folder: str | None = None,
        time_zone: str | None = None,
        name: str | None = None,
    ) -> Import:
        """Upload a file for a worker to import. `dry_run` says what it would do, and `resume_import` starts it."""
        ...

    @operation("GET", "/imports/{import_id}")
    def get_import(self, import_id: str) -> Import:
        """An import: where it stands, and what came of it."""
        ...

    @operation("POST", "/imports/{import_id}/pause")
    def pause_import(self, import_id: str, *, idempotency_key: str | None = None) -> Import:
        """Let an import rest."""
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
        """Start an import that was checked, or go on with one that rests."""
        ...

    @operation("POST", "/imports/{import_id}/undo")
    def undo_import(self, import_id: str, *, idempotency_key: str | None = None) -> Import:
        """Delete what an import stored, as far as nobody has changed it since."""
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
        """Give a file the content of an earlier version, also a deleted one."""
        ...

    # The diary: what an agent notes for itself about a person

    @listing("/diary")
    def list_diary(
        self,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        last: int | None = None,
        topic: str | None = None,
        q: str | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> DiaryEntry:
        """The agent's entries, the newest first; `q` finds those that have each of its words."""
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
        """Add an entry to the agent's diary. It is never changed."""
        ...

    @operation("DELETE", "/diary/{entry_id}")
    def delete_diary_entry(self, entry_id: str) -> None:
        """Move an entry to the trash."""
        ...

    # Groups of people: who belongs to them, and what their members share

    @listing("/groups")
    def list_groups(
        self, *, user_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Group:
        """The tenant's groups, the newest first; with `user_id` those of which this person is a member."""
        ...

    @operation("POST", "/groups")
    def add_group(self, name: str, *, kind: GroupKind | None = None, idempotency_key: str | None = None) -> Group:
        """Make a group, which has no members yet."""
        ...

    @operation("GET", "/groups/{group_id}")
    def get_group(self, group_id: str) -> Group:
        """A group by its id."""
        ...

    @operation("PATCH", "/groups/{group_id}")
    def change_group(self, group_id: str, *, name: str | None = None, kind: GroupKind | None = None) -> Group:
        """Give a group another name or kind."""
        ...

    @operation("DELETE", "/groups/{group_id}")
    def delete_group(self, group_id: str) -> None:
        """Move a group to the trash with its members and facts; an operator can restore it."""
        ...

    @listing("/groups/{group_id}/members")
    def list_group_members(
        self, group_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> GroupMember:
        """The members of a group, the first to join first."""
        ...

    @operation("PUT", "/groups/{group_id}/members")
    def set_group_member(self, group_id: str, *, user_id: str | None, may_write: bool | None = None) -> GroupMember:
        """Add a member, or say whether one may write."""
        ...

    @operation("DELETE", "/groups/{group_id}/members")
    def remove_group_member(self, group_id: str, *, user_id: str | None) -> None:
        """Let a member leave; what they said stays."""
        ...

    @listing("/groups/{group_id}/facts")
    def list_group_facts(self, group_id: str, *, page_size: int | None = None, cursor: str | None = None) -> GroupFact:
        """What a group knows, what was said last first."""
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
        """State a fact of a group as the member who says it."""
        ...

    @operation("DELETE", "/groups/{group_id}/facts/{fact_id}")
    def delete_group_fact(self, group_id: str, fact_id: str, *, user_id: str | None = None) -> None:
        """Delete a fact; with `user_id` withdraw what this member said, and the fact stays if others said it."""
        ...

    # People and their rights

    @listing("/users")
    def list_users(self, *, q: str | None = None, page_size: int | None = None, cursor: str | None = None) -> Person:
        """The people of the tenant; `q` finds parts of an id or a name."""
        ...

    @operation("GET", "/users/detail")
    def get_user(self, *, user_id: str | None) -> PersonDetail:
        """A person, with counts and the work that is left."""
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
        """Change the named fields of a person whom the hub knows."""
        ...

    @listing("/agents")
    def list_agents(
        self, *, agent_id: str | None = None, page_size: int | None = None, cursor: str | None = None
    ) -> Agent:
        """The agents of the tenant; `agent_id` finds one by what you call it."""
        ...

    @operation("GET", "/agents/{agent_id}")
    def get_agent(self, agent_id: str) -> Agent:
        """One agent, by the hub's `id` of it."""
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
        """Change the named switches and the guidance of an agent, by the hub's `id` of it."""
        ...

    @operation("GET", "/content-policy")
    def get_content_policy(self) -> ContentPolicy:
        """What the tenant does not allow to be remembered."""
        ...

    @operation("PUT", "/content-policy")
    def put_content_policy(
        self, *, categories: Sequence[NewPolicyCategory], if_match: int | None = None
    ) -> ContentPolicy:
        """Give the tenant this content policy, from the next text on; no categories: nothing is forbidden."""
        ...

    @listing("/content-policy/versions")
    def list_content_policy_versions(self, *, page_size: int | None = None, cursor: str | None = None) -> ContentPolicy:
        """The versions of the content policy, newest first."""
        ...

    @operation("POST", "/content-policy/restore")
    def restore_content_policy(
        self, *, version: int, if_match: int | None = None, idempotency_key: str | None = None
    ) -> ContentPolicy:
        """Make an older version the content policy again, as a new version."""
        ...

    @operation("GET", "/content-policy/topics")
    def list_content_policy_topics(self) -> PolicyTopics:
        """The topics that the hub knows, to begin with."""
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
        """What was dropped, as counts by day, category, version and road."""
        ...

    @operation("POST", "/content-policy/dry-runs")
    def start_policy_dry_run(
        self, *, categories: Sequence[NewPolicyCategory] | None = None, idempotency_key: str | None = None
    ) -> DryRun:
        """Find out which stored memories these categories, or those in force, would not allow."""
        ...

    @operation("GET", "/content-policy/dry-runs/{trial_id}")
    def get_policy_dry_run(self, trial_id: str) -> DryRun:
        """A dry run with its progress and what it found."""
        ...

    @listing("/content-policy/dry-runs/{trial_id}/findings")
    def list_policy_dry_run_findings(
        self, trial_id: str, *, page_size: int | None = None, cursor: str | None = None
    ) -> Finding:
        """The memories that a dry run found, and that are not deleted yet."""
        ...

    @operation("POST", "/content-policy/dry-runs/{trial_id}/delete")
    def delete_policy_dry_run_findings(self, trial_id: str, *, idempotency_key: str | None = None) -> DryRun:
        """Move what a dry run found to the trash."""
        ...

    @operation("POST", "/person-links")
    def person_link(
        self,
        *,
        user_id: str | None,
        ttl: int | None = None,
        language: PageLanguage | None = None,
        allow: Sequence[PersonAct] | None = None,
        embed_origins: Sequence[str] | None = None,
    ) -> PersonLink:
        """A link with which the person opens the page of their own memory, once and within `ttl` seconds (300).

        `allow`: what they may do there; without it all that the tenant allows. `embed_origins`: sites that may show it
        in a frame.
        """
        ...

    @operation("POST", "/privacy/requests")
    def create_privacy_request(
        self,
        *,
        user_id: str | None,
        type: CaseType,  # noqa: A002  # the API's word
        channel: str | None = None,
        reference: str | None = None,
        idempotency_key: str | None = None,
    ) -> PrivacyCase:
        """Open a case about a person's data."""
        ...

    @operation("GET", "/privacy/requests/{case_id}")
    def get_privacy_request(self, case_id: str) -> PrivacyCase:
        """The case as it stands."""
        ...

    @operation("GET", "/privacy/requests/{case_id}/export", repeatable=False)
    def take_privacy_export(self, case_id: str) -> bytes:
        """The export of a case as a ZIP file, once: the hub keeps no copy."""
        ...

    # Extractions

    @listing("/extractions")
    def list_extractions(
        self,
        *,
        user_id: str | None = None,
        status: RunStatus | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Extraction:
        """Extraction runs, the newest first."""
        ...

    @operation("GET", "/extractions/{run_id}")
    def get_extraction(self, run_id: str) -> Extraction:
        """One run."""
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
        """The exact prompt of a session's batch, or of messages that are not stored, and what would become of the
        answer. With `ask=False` the prompt alone. Nothing is stored."""
        ...

    @operation("POST", "/extractions/{run_id}/retry")
    def retry_extraction(self, run_id: str, *, idempotency_key: str | None = None) -> Retry:
        """Make the batch of a failed or parked run due now."""
        ...

    # The graph

    @operation("POST", "/graph/triples")
    def add_triple(
        self,
        *,
        user_id: str | None,
        subject: str,
        predicate: str,
        object: str,  # noqa: A002  # the API's word
        agent_id: str | None = None,
        valid_from: Moment | None = None,
        valid_to: Moment | None = None,
        confidence: float | None = None,
        subject_type: str | None = None,
        object_type: str | None = None,
        turn_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> Triple:
        """State a triple. Look at its `status`: what an agent states waits for an operator."""
        ...

    @operation("POST", "/graph/invalidate")
    def invalidate_triple(
        self,
        *,
        user_id: str | None,
        subject: str,
        predicate: str,
        object: str,  # noqa: A002  # the API's word
        agent_id: str | None = None,
        ended: Moment | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> EndedTriples:
        """End what holds no longer: at `ended`, or now."""
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
        at: Moment | None = None,
        confidence: float | None = None,
        object_type: str | None = None,
        turn_id: str | None = None,
        stated_by: StatedBy | None = None,
        idempotency_key: str | None = None,
    ) -> Triple:
        """Replace what holds by something else, at one moment."""
        ...

    @listing("/graph/entities")
    def list_entity_triples(
        self,
        *,
        user_id: str | None,
        name: str,
        direction: Direction | None = None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """What holds of an entity; with `as_of` only what holds then."""
        ...

    @listing("/graph/relations")
    def list_relation_triples(
        self,
        *,
        user_id: str | None,
        predicate: str,
        as_of: Moment | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """The triples of a predicate; with `as_of` only what holds then."""
        ...

    @listing("/graph/timeline")
    def list_graph_timeline(
        self,
        *,
        user_id: str | None,
        entity: str | None = None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
        page_size: int | None = None,
        cursor: str | None = None,
    ) -> Triple:
        """Triples from the first to the last, of everything or of one entity."""
        ...

    @operation("GET", "/graph/stats")
    def get_graph_stats(
        self,
        *,
        user_id: str | None,
        as_of: Moment | None = None,
        agent_id: str | None = None,
        roles: Sequence[str] | None = None,
    ) -> GraphStats:
        """How much the graph of a person has."""
        ...

    # The store

    @operation("GET", "/store/items")
    def get_store_item(self, *, namespace: str, key: str, refresh_ttl: bool | None = None) -> StoreItem | None:
        """An item; None where there is none. The namespace is its labels, joined by periods."""
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
        """Write an item, in place of what is there. `index`: paths to embed, False: nothing; `ttl` is in minutes."""
        ...

    @operation("DELETE", "/store/items")
    def delete_store_item(self, *, namespace: str, key: str) -> None:
        """Delete an item, if it is there. The namespace is its labels, joined by periods."""
        ...

    @operation("POST", "/store/items/search", repeatable=True)
    def search_store_items(
        self,
        *,
        namespace_prefix: Sequence[str],
        filter: dict[str, Any] | None = None,  # noqa: A002  # the API's word
        limit: int | None = None,
        offset: int | None = None,
        query: str | None = None,
        refresh_ttl: bool | None = None,
    ) -> FoundStoreItems:
        """Items below a prefix: with a query the best first, without one the last written first."""
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
        """Namespaces, sorted; `*` stands for any one label."""
        ...

    # The last write counts, so that the same batch again changes nothing.
    @operation("POST", "/store/batch", repeatable=True)
    def batch_store(self, *, operations: Sequence[StoreOperation]) -> StoreAnswers:
        """Many operations: first the reads, then the writes, all or none."""
        ...
