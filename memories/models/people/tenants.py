"""Tenants: the applications that use the hub, with their own numbers for the rules."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.ids import new_id


class MemoryOf(models.TextChoices):
    """Whose memory a conversation becomes."""

    PERSON = "person", _("The person: shared by all agents")
    AGENT = "agent", _("The agent: private to the agent of the conversation")


class ContextLog(models.TextChoices):
    """What is kept of each context that an agent is given."""

    OFF = "off", _("Nothing")
    IDS = "ids", _("Which memories it had, and their scores")
    TEXTS = "texts", _("The question and the context, too")


def person_namespaces() -> list[str]:
    """The habits of LangGraph's store: ("memories", user_id), and deepagents' (user_id, "filesystem")."""
    return ["memories.{user_id}", "{user_id}.filesystem"]


def dream_files() -> list[str]:
    """The hub's own habit, nanobot's, deepagents', and the skills of all of them."""
    return ["/SOUL.md", "/USER.md", "/MEMORY.md", "/memory/MEMORY.md", "/memories/AGENTS.md", "/skills/"]


class PersonMay(models.TextChoices):
    """What a person may do on their own page, beside seeing what is remembered."""

    CORRECT = "correct", _("Correct a fact")
    FORGET = "forget", _("Forget a fact")
    CONVERSATIONS = "conversations", _("Delete a conversation and what was learned from it")
    PAUSE = "pause", _("Pause their memory")
    EXPORT = "export", _("Download a copy of their data")
    ERASURE = "erasure", _("Ask for the erasure of everything")
    READERS = "readers", _("See who was given their memories")


def person_may() -> list[str]:
    """What a person may do once the tenant has switched the page on, and has chosen nothing else."""
    return [PersonMay.CORRECT, PersonMay.FORGET, PersonMay.EXPORT, PersonMay.ERASURE]


class Tenant(models.Model):
    class ContextLanguage(models.TextChoices):
        """The languages in which contexts have the hub's own words (memories/text/memory_block.py)."""

        ENGLISH = "en", "English"
        CHINESE = "zh-hans", "简体中文"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    slug = models.SlugField(
        _("slug"), max_length=63, unique=True, help_text=_("Short name used by commands, e.g. acme-prod.")
    )
    name = models.CharField(_("name"), max_length=200, blank=True)
    capture = models.BooleanField(
        _("capture"), default=True, help_text=_("Off: posted turns are answered 202 and not stored.")
    )
    serve = models.BooleanField(_("serve"), default=True, help_text=_("Off: contexts are empty."))
    trust_assistant = models.BooleanField(
        _("trust assistant"),
        default=False,
        help_text=_(
            "On: facts that only the assistant stated are served without review. What users say still takes precedence."
        ),
    )
    extraction_guidance = models.TextField(
        _("extraction guidance"),
        blank=True,
        max_length=4000,
        help_text=_("Instructions to the model on what to remember. They are sent with every call."),
    )
    signal_phrases = models.JSONField(
        _("signal phrases"),
        default=dict,
        blank=True,
        help_text=_("Kind of signal → phrases that replace the hub's own patterns."),
    )
    guidance_version = models.PositiveIntegerField(default=1, editable=False)
    time_zone = models.CharField(
        _("time zone"), max_length=64, default="UTC", help_text=_("For end users without a time zone of their own.")
    )
    language = models.CharField(
        _("language of contexts"),
        max_length=10,
        choices=ContextLanguage.choices,
        default=ContextLanguage.ENGLISH,
        help_text=_("Language of the first line and the headings. Memories stay in their own language."),
    )
    memory_of = models.CharField(
        _("memory belongs to"),
        max_length=6,
        choices=MemoryOf.choices,
        default=MemoryOf.PERSON,
        help_text=_(
            "With “The agent”, the facts, turns and episodes of a conversation are visible only to its agent. Existing "
            "facts keep their owner."
        ),
    )
    context_log = models.CharField(
        _("log of contexts"),
        max_length=5,
        choices=ContextLog.choices,
        default=ContextLog.IDS,
        help_text=_("What is kept of each context served, for as many days as set under “Retention”."),
    )
    file_seed = models.TextField(
        _("first text of memory files"),
        blank=True,
        max_length=4000,
        help_text=_("What agents read in /memories/AGENTS.md until it is written. Empty: the hub’s own text."),
    )
    dream_guide = models.TextField(
        _("guide for dreams"),
        blank=True,
        max_length=4000,
        help_text=_("Instructions to the model on what belongs in the memory files. They are sent with every dream."),
    )
    dream_model = models.CharField(
        _("model of dreams"),
        blank=True,
        max_length=100,
        help_text=_("Name of another model at the same endpoint. Empty: the one that extracts."),
    )
    dream_files = models.JSONField(
        _("files of dreams"),
        default=dream_files,
        blank=True,
        help_text=_(
            "Which memory files dreams may edit, one path per line. With a slash at its end it is a folder. A missing "
            "file is begun only in a folder where the agent has one of these files."
        ),
    )
    person_namespaces = models.JSONField(
        _("namespaces of people"),
        default=person_namespaces,
        blank=True,
        help_text=_(
            "Which label of a namespace of the store is an end user’s id, one pattern per line: memories.{user_id}. "
            "The first pattern that a namespace begins with decides. What names nobody belongs to the tenant."
        ),
    )
    person_page = models.BooleanField(
        _("page for the person"),
        default=False,
        help_text=_("On: the application can make links with which an end user opens a page of their own memory."),
    )
    person_may = models.JSONField(
        _("what the person may do there"),
        default=person_may,
        blank=True,
        help_text=_("Beside seeing what is remembered. A link can allow less, never more."),
    )
    person_color = models.CharField(
        _("colour of that page"),
        max_length=7,
        blank=True,
        help_text=_("Of its buttons and links, like #0f766e. Empty: the hub’s own."),
    )
    numbers = models.JSONField(
        default=dict, blank=True, help_text="Name of a rule → the tenant's own number; a missing one is the hub's."
    )
    policy_version = models.PositiveIntegerField(
        default=0, editable=False, help_text="Of its content policy; 0: it has none, and texts cost no statement."
    )
    context_profiles = models.BooleanField(
        default=False,
        editable=False,
        help_text="Whether contexts tell one of its own profiles: else it costs no statement.",
    )
    webhook_events = models.JSONField(
        default=list, editable=False, help_text="What its webhooks are told: without any, events cost no statement."
    )
    decayed_on = models.DateField(null=True, editable=False, help_text="Its own day of the last nightly pass.")
    retained_on = models.DateField(null=True, editable=False, help_text="Its own day of the last look at retention.")
    offboarded_at = models.DateTimeField(null=True, editable=False, help_text="Since when it is off-boarded.")
    before_offboarding = models.JSONField(
        default=dict, editable=False, help_text="Capture and serve as they were, for the way back."
    )
    created_at = models.DateTimeField()
    columns = Columns(waived="settings of an application, written by staff")

    class Meta:
        ordering = ["slug"]
        permissions = [("export_tenant", "Can export lists as CSV files")]
        verbose_name = _("tenant")
        verbose_name_plural = _("tenants")

    def __str__(self) -> str:
        return self.slug


class OfParent(models.Model):
    """A row that belongs to another row of the same tenant: references of the database by (tenant, id) hold it there.

    Its makers fill the tenant in.
    """

    # The references see that there is such a tenant.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False, editable=False
    )

    class Meta:
        abstract = True
