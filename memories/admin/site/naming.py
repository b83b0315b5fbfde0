"""Names of records and models in headings and messages. They never contain what end users wrote."""

from collections.abc import Iterator

from django.apps import apps
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from memories import models

# Operators named these: their names are shown as written.
NAMED = (models.APIKey, Group, models.Operator, models.Tenant)
# Singular and plural of models without a list, whose verbose names are Django's English defaults.
WORDS: dict[type[Model], tuple[Promise, Promise]] = {
    models.Batch: (_("batch"), _("batches")),
    models.BatchEntry: (_("batch entry"), _("batch entries")),
    models.EpisodeVector: (_("episode vector"), _("episode vectors")),
    models.FactEvidence: (_("fact evidence"), _("fact evidence")),
    models.FactMerge: (_("fact merge"), _("fact merges")),
    models.FactRefusal: (_("fact refusal"), _("fact refusals")),
    models.FactRelation: (_("fact relation"), _("fact relations")),
    models.FactRevision: (_("fact revision"), _("fact revisions")),
    models.FactVector: (_("fact vector"), _("fact vectors")),
    models.IdempotencyRecord: (_("idempotency record"), _("idempotency records")),
    models.MergeEntry: (_("merge entry"), _("merge entries")),
    models.PersonMerge: (_("person merge"), _("person merges")),
    models.ProfileRevision: (_("profile revision"), _("profile revisions")),
    models.ProfileSection: (_("profile section"), _("profile sections")),
    models.SessionQueue: (_("session queue"), _("session queues")),
    models.Tombstone: (_("tombstone"), _("tombstones")),
    models.Turn: (_("turn"), _("turns")),
    models.TurnVector: (_("turn vector"), _("turn vectors")),
    models.WorkingMemory: (_("working memory"), _("working memories")),
}
HEAD, TAIL = 4, 6


def called(record: Model) -> str:
    """Like `End user 01a2…4846b5`: the model and a short id. Records that operators named have that name."""
    return str(record) if isinstance(record, NAMED) else f"{kind_of(record)} {short_id(record)}"


def short_id(record: Model) -> str:
    """The start of the id, which encodes the time, and its end, which differs between records of one moment."""
    whole = str(record.pk)
    return whole if len(whole) <= HEAD + TAIL else f"{whole[:HEAD]}…{whole[-TAIL:]}"


def kind_of(record: Model | type[Model]) -> str:
    """The model's singular name, capitalized."""
    return str(capfirst(_singular_and_plural(record)[0]))


def many_of(model: type[Model]) -> str:
    """The model's plural name."""
    return _singular_and_plural(model)[1]


def kinds() -> Iterator[tuple[str, str]]:
    """The models with a translated name: their class name, which the audit trail stores, and that name."""
    own: list[type[Model]] = [*apps.get_app_config("memories").get_models(), Group]
    for model in own:
        if model in WORDS or isinstance(model._meta.verbose_name, Promise):
            yield model.__name__, kind_of(model)


def kind_named(name: str) -> str:
    """The translated name of a class name in the audit trail; the class name itself if the model is gone."""
    return dict(kinds()).get(name, name)


def _singular_and_plural(of: Model | type[Model]) -> tuple[str, str]:
    singular, plural = WORDS.get(of._meta.model, (of._meta.verbose_name, of._meta.verbose_name_plural))
    return str(singular), str(plural)
