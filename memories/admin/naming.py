"""What a record is called in headings and messages: never by what people wrote."""

from collections.abc import Iterator

from django.apps import apps
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from memories.models import (
    APIKey,
    Batch,
    BatchEntry,
    EpisodeVector,
    FactEvidence,
    FactMerge,
    FactRefusal,
    FactRelation,
    FactRevision,
    FactVector,
    IdempotencyRecord,
    MergeEntry,
    Operator,
    PersonMerge,
    ProfileRevision,
    ProfileSection,
    SessionQueue,
    Tenant,
    Tombstone,
    Turn,
    TurnVector,
    WorkingMemory,
)

# Staff named these, and their names are read as they are written.
NAMED = (APIKey, Group, Operator, Tenant)
# One and many of those that have no lists, whose own names are Django's English ones.
WORDS: dict[type[Model], tuple[Promise, Promise]] = {
    Batch: (_("batch"), _("batches")),
    BatchEntry: (_("batch entry"), _("batch entries")),
    EpisodeVector: (_("episode vector"), _("episode vectors")),
    FactEvidence: (_("fact evidence"), _("fact evidence")),
    FactMerge: (_("fact merge"), _("fact merges")),
    FactRefusal: (_("fact refusal"), _("fact refusals")),
    FactRelation: (_("fact relation"), _("fact relations")),
    FactRevision: (_("fact revision"), _("fact revisions")),
    FactVector: (_("fact vector"), _("fact vectors")),
    IdempotencyRecord: (_("idempotency record"), _("idempotency records")),
    MergeEntry: (_("merge entry"), _("merge entries")),
    PersonMerge: (_("person merge"), _("person merges")),
    ProfileRevision: (_("profile revision"), _("profile revisions")),
    ProfileSection: (_("profile section"), _("profile sections")),
    SessionQueue: (_("session queue"), _("session queues")),
    Tombstone: (_("tombstone"), _("tombstones")),
    Turn: (_("turn"), _("turns")),
    TurnVector: (_("turn vector"), _("turn vectors")),
    WorkingMemory: (_("working memory"), _("working memories")),
}
HEAD, TAIL = 4, 6


def called(record: Model) -> str:
    """Like `End user 01a2…4846b5`: the kind in the language in force and a short id; what staff named, by its name."""
    return str(record) if isinstance(record, NAMED) else f"{kind_of(record)} {short_id(record)}"


def short_id(record: Model) -> str:
    """The beginning of the id, which tells when, and its end, which tells records of one moment apart."""
    whole = str(record.pk)
    return whole if len(whole) <= HEAD + TAIL else f"{whole[:HEAD]}…{whole[-TAIL:]}"


def kind_of(record: Model | type[Model]) -> str:
    """What one such record is called, with a capital letter where there are any."""
    one, _many = _words(record)
    return str(capfirst(one))


def many_of(model: type[Model]) -> str:
    """What several are called."""
    _one, many = _words(model)
    return many


def kinds() -> Iterator[tuple[str, str]]:
    """The models that staff have a word for: the name that the audit trail keeps, and the word."""
    models: list[type[Model]] = [*apps.get_app_config("memories").get_models(), Group]
    for model in models:
        if model in WORDS or isinstance(model._meta.verbose_name, Promise):
            yield model.__name__, kind_of(model)


def kind_named(name: str) -> str:
    """The word for what the audit trail calls so; the name itself where there is no such model any more."""
    return dict(kinds()).get(name, name)


def _words(of: Model | type[Model]) -> tuple[str, str]:
    one, many = WORDS.get(of._meta.model, (of._meta.verbose_name, of._meta.verbose_name_plural))
    return str(one), str(many)
