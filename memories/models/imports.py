"""Imports of what people already have: the job, its file in pieces, and what it made."""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, TEXT, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant


class ImportSource(models.TextChoices):
    """What imports can read (memories/imports/sources.py has how)."""

    CHATGPT = "chatgpt", "ChatGPT"
    CLAUDE = "claude", "Claude"
    CLAUDE_CODE = "claude-code", "Claude Code"
    CODEX = "codex", "Codex"
    DEEPSEEK = "deepseek", "DeepSeek"
    GEMINI = "gemini", "Gemini"
    GROK = "grok", "Grok"
    MISTRAL = "mistral", "Mistral"
    OPEN_WEBUI = "open-webui", "Open WebUI"
    LIBRECHAT = "librechat", "LibreChat"
    LOBECHAT = "lobechat", "LobeChat"
    CHERRY_STUDIO = "cherry-studio", "Cherry Studio"
    JSONL = "jsonl", _("Turns as JSON lines")
    FACTS = "facts", _("Facts as JSON lines or CSV")
    MEM0 = "mem0", "mem0"
    LANGGRAPH = "langgraph", "LangGraph"
    DEERFLOW = "deerflow", "DeerFlow"
    MEMPALACE = "mempalace", "MemPalace"
    GRAPHITI = "graphiti", "Graphiti, Zep"
    HINDSIGHT = "hindsight", "Hindsight"
    HONCHO = "honcho", "Honcho"
    MEMOBASE = "memobase", "Memobase"
    DEEPAGENTS = "deepagents", "deepagents"
    MARKDOWN = "markdown", _("Folder of Markdown")
    MEMORY_HUB = "memory-hub", _("Export of a hub")


class ImportQuerySet(LeasedQuerySet["Import"]):
    def to_run(self) -> Self:
        """Those that have work for a worker, leased or not."""
        return self.filter(Import.IN_WORK)

    def with_file(self) -> Self:
        return self.filter(kept_until__isnull=False)

    def drop_files(self) -> int:
        """Delete the files of these imports, with all that was read of them and how they were to be read; how many
        there were. In the caller's transaction."""
        found = list(self.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
        ImportPiece.objects.filter(part_of__in=found).delete()
        return Import.objects.filter(pk__in=found).update(kept_until=None, options={}, preview={})

    def abandon(self, failure: str, *, now: datetime) -> int:
        """End these imports: whoever works on one loses the lease, and so stores nothing more of it. What was stored
        stays, and can be undone. Their files go. How many there were."""
        found = list(self.with_file().select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))
        rows = Import.objects.filter(pk__in=found)
        rows.update(
            state=Import.State.FAILED, failure=failure, lease_token=None, lease_until=None, attempts=0, finished_at=now
        )
        return rows.drop_files()


class Import(Leased):
    """One file that somebody uploaded, and what became of it. Its id is the change set of what it made.

    `options` and `preview` name people and quote the file: they go with it.
    """

    class State(models.TextChoices):
        CHECKING = "checking", _("Being checked")
        # The dry run is over; it waits for somebody to start it.
        CHECKED = "checked", _("Checked")
        RUNNING = "running", _("Running")
        PAUSED = "paused", _("Paused")
        DONE = "done", _("Done")
        FAILED = "failed", _("Failed")
        UNDOING = "undoing", _("Being undone")
        UNDONE = "undone", _("Undone")

    IN_WORK = Q(state__in=[State.CHECKING, State.RUNNING, State.UNDOING])

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    state = models.CharField(_("status"), max_length=8, choices=State.choices, default=State.CHECKING)
    source = models.CharField(_("source"), max_length=20, blank=True, help_text="Empty: not recognised yet.")
    size = models.PositiveBigIntegerField(_("size"), default=0, help_text="Bytes of the file.")
    kept_until = models.DateTimeField(null=True, help_text="When its file is deleted at the latest; null: it is gone.")
    options = models.JSONField(default=dict, help_text="Whose it is, and how it is read.")
    preview = models.JSONField(default=dict, help_text="Of the dry run: people, times, samples.")
    position = models.PositiveBigIntegerField(default=0, help_text="Records of the file that were taken.")
    expected = models.PositiveBigIntegerField(default=0, help_text="How many there are; 0: nobody knows yet.")
    counts = models.JSONField(default=dict, help_text="Outcome → how many.")
    left_out = models.JSONField(default=dict, help_text="Reason → how many.")
    refused = models.JSONField(default=dict, help_text="Code → how many.")
    findings = models.JSONField(
        default=list,
        db_default=models.Value([], models.JSONField()),
        help_text="Of a file that is not taken, or not as a whole: why.",
    )
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, help_text="Who uploaded it.")
    actor_id = models.CharField(max_length=36, blank=True)
    created_at = models.DateTimeField(_("uploaded"))
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    undone_at = models.DateTimeField(null=True)
    columns = Columns(
        omitted="jobs about files of many people; what came of the person's words is exported as what it became",
        options=TEXT, preview=TEXT, state=CODE, source=CODE, counts=CODE, left_out=CODE, refused=CODE, findings=CODE,
        actor_kind=CODE, actor_id=CODE, failure=CODE,
    )  # fmt: skip

    objects = ImportQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view", "add", "change")
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        indexes = [
            # Serves the lists.
            models.Index(fields=["tenant", "-created_at"], name="import_newest_idx"),
            # Serves the workers.
            models.Index(
                fields=["lease_until"],
                name="import_running_idx",
                condition=Q(state__in=["checking", "running", "undoing"]),
            ),
            # Serves deleting files that nobody starts, and quotas.
            models.Index(fields=["kept_until"], name="import_kept_idx", condition=Q(kept_until__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Import {self.id}"

    @property
    def has_file(self) -> bool:
        return self.kept_until is not None


class ImportPiece(OfParent):
    """Some megabytes of an uploaded file; they go when the import ends."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    part_of = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="pieces", db_index=False)
    number = models.PositiveIntegerField(help_text="From 0, in the order of the file.")
    content = models.BinaryField(editable=False)
    columns = Columns(
        omitted="a file that waits to be imported, of many people; it is deleted within a day", content=TEXT
    )

    class Meta:
        ordering = ["part_of", "number"]
        default_permissions = ()
        verbose_name = _("piece of an import")
        verbose_name_plural = _("pieces of imports")
        # It also finds the pieces of an import.
        constraints = [models.UniqueConstraint(fields=["part_of", "number", "tenant"], name="import_piece_once")]

    def __str__(self) -> str:
        return f"Piece {self.number} of import {self.part_of_id}"


class ImportedRow(OfParent):
    """One thing that an import made, so that it can be undone and told. Undoing deletes it."""

    class Kind(models.TextChoices):
        # Messages of the session `row`: the turns from `first` to `last`.
        TURNS = "turns", _("Messages")
        # Turns that the import left because a newer export shows another branch, or took back.
        LEFT = "left", _("Messages of a branch that was left")
        BACK = "back", _("Messages of a branch that was taken back")
        FACT = "fact", _("Facts")
        # `last` is the version that it wrote.
        SECTION = "section", _("Sections of profiles")
        # A text of a section that waits for an operator: `row` is the proposed revision.
        ASKED = "asked", _("Sections pending review")
        FILE = "file", _("Memory files")
        ITEM = "item", _("Store items")
        # Somebody whom the import made; `row` is the mark of their record then.
        PERSON = "person", _("End users")
        # What it wrote in the record of somebody who was there: `first` says which fields, `row` is their mark.
        RECORD = "record", _("Records of end users")
        # Of an export of a hub. `last` is the version of the row, where it has one.
        SESSION = "session", _("Sessions")
        EPISODE = "episode", _("Episodes")
        REFUSAL = "refusal", _("Refusals")
        PROFILE = "profile", _("Sections with their history")
        HISTORY = "history", _("Versions of sections")
        DIARY = "diary", _("Diary entries")
        ENTITY = "entity", _("Entities")
        TRIPLE = "triple", _("Relations")
        GROUP = "group", _("Groups")
        MEMBER = "member", _("Members of groups")
        SAID = "said", _("Facts of groups")

    id = models.BigAutoField(primary_key=True)
    made_by = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="rows", db_index=False)
    # Whose it was then; nobody's are items of the tenant.
    end_user = models.ForeignKey(EndUser, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=7, choices=Kind.choices)
    row = models.UUIDField()
    first = models.PositiveIntegerField(default=0)
    last = models.PositiveIntegerField(default=0)
    at = models.DateTimeField(null=True, help_text="Of an item: when it was last written then.")
    columns = Columns(omitted="which import brought rows that are exported", kind=CODE)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        verbose_name = _("imported row")
        verbose_name_plural = _("imported rows")
        indexes = [
            # Serves undoing, in order, and the report.
            models.Index(fields=["made_by", "kind", "id"], name="imported_row_made_idx"),
            # Serves a person's page, and erasures.
            models.Index(fields=["end_user", "made_by"], name="imported_row_person_idx"),
        ]

    def __str__(self) -> str:
        return f"Row of import {self.made_by_id}"
