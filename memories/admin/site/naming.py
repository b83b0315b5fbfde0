"""Names of records and models in headings, titles and messages.

The page of a record is titled by what it holds, since an id says nothing; `called()` is for places that outlive a page.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.text import Truncator, capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import models
from memories.kinds import PLAIN

# Operators named these: their names are shown as written.
NAMED = (models.APIKey, Group, models.ManagementKey, models.Operator, models.Tenant)
# Lists that the sidebar calls by another name than their rows.
LISTS: dict[Any, Promise] = {
    models.AuditEvent: gettext_lazy("Audit trail"),
    models.LoggedContext: gettext_lazy("Log of contexts"),
}
HEAD, TAIL = 4, 6
LONGEST_NAME = 60
# What a record of a model holds that names it, for whoever may see the record.
WORDS: Mapping[type[Model], Callable[[Any], str]] = {
    models.EndUser: lambda person: _line(person.display_name or person.external_id),
    models.Fact: lambda fact: _quoted(fact.content),
    models.Episode: lambda episode: _quoted(episode.summary),
    **{kind.model: lambda row: _quoted(row.content) for kind in PLAIN},
    models.Trajectory: lambda row: _quoted(row.task),
    models.Skill: lambda skill: _line(skill.name),
    models.MemoryFile: lambda file: _line(file.path),
    models.StoreItem: lambda item: _line(item.key),
    models.GraphEntity: lambda entity: _line(entity.name),
    models.GraphTriple: lambda one: _line(f"{one.subject.name} – {one.predicate} – {one.object.name}"),
    models.MemoryGroup: lambda group: _line(group.name),
    models.WebhookEndpoint: lambda webhook: _line(webhook.name),
    models.Agent: lambda agent: _line(agent.agent_id),
    models.ReviewItem: lambda item: _quoted(_text_of(item)) or short_id(item),
    models.Session: lambda session: _line(session.external_id),
    models.Import: lambda row: _at(row.created_at),
    models.DecayPass: lambda row: _at(row.started_at),
}
# Of these, whose it is and when it was.
OF_PERSON: Mapping[type[Model], Callable[[Any], str]] = {
    models.ExtractionRun: lambda run: _at(run.started_at),
    models.Dream: lambda dream: _at(dream.started_at),
    models.LoggedContext: lambda context: _at(context.created_at),
}


def called(record: Model) -> str:
    """Like `End user 01a2…4846b5`: the model and a short id. Records that operators named have that name."""
    return str(record) if isinstance(record, NAMED) else f"{kind_of(record)} {short_id(record)}"


def named(record: Model, operator: Any) -> str:
    """The record by what it holds, like `Fact “Likes tea”`, for who may see its kind. A person is named to who may see
    people. It reads the relations of RecordPage.list_select_related."""
    if not operator.has_perm(f"{record._meta.app_label}.view_{record._meta.model_name}"):
        return called(record)
    may_see_people = operator.has_perm("memories.view_enduser")
    if isinstance(record, models.PrivacyCase):
        whose = WORDS[models.EndUser](record.end_user) if record.end_user and may_see_people else ""
        # The ticket's number stays when the person is erased.
        whose = whose or _line(record.reference) or short_id(record)
        return f"{record.get_type_display()} · {whose}"
    if when := OF_PERSON.get(type(record)):
        whose = f"{WORDS[models.EndUser](record.end_user)}, " if may_see_people else ""  # type: ignore[attr-defined]
        return f"{kind_of(record)} {whose}{when(record)}"
    words = WORDS.get(type(record))
    return f"{kind_of(record)} {words(record)}".rstrip() if words else called(record)


def _quoted(text: str) -> str:
    return f"“{_line(text)}”" if text else ""


def _line(text: str) -> str:
    """The beginning, on one line: of a longer text so much, in any script."""
    return Truncator(" ".join(text[: 4 * LONGEST_NAME].split())).chars(LONGEST_NAME)


def _at(moment: Any) -> str:
    return date_format(localtime(moment), "Y-m-d H:i")


def _text_of(item: models.ReviewItem) -> str:
    """What it asks about; empty for a section of a profile, whose texts are long."""
    if item.fact:
        return item.fact.content
    return item.episode.summary if item.episode else ""


def short_id(record: Model) -> str:
    """The start of the id, which encodes the time, and its end, which differs between records of one moment."""
    whole = str(record.pk)
    return whole if len(whole) <= HEAD + TAIL else f"{whole[:HEAD]}…{whole[-TAIL:]}"


def kind_of(record: Model | type[Model]) -> str:
    """The model's singular name, capitalized."""
    return str(capfirst(one_of(record._meta)))


def one_of(opts: Any) -> str:
    """The singular name of the model with this `_meta`. Django's groups are called roles here."""
    return _("role") if opts.model is Group else str(opts.verbose_name)


def many_of(model: type[Model]) -> str:
    """The model's plural name."""
    return _("roles") if model is Group else str(model._meta.verbose_name_plural)


def list_of(model: type[Model]) -> str:
    """The name of the model's list, capitalized, as the sidebar has it."""
    return str(LISTS.get(model) or capfirst(many_of(model)))


def crumb_of(title: object) -> str:
    """A breadcrumb's title in our words: names of lists, of Django's groups, and of the app that has them."""
    for model in (Group, *LISTS):
        if title is model._meta.verbose_name_plural:
            return list_of(model)
    return _("Access") if title is apps.get_app_config("auth").verbose_name else str(title)


def kinds() -> Iterator[tuple[str, str]]:
    """The models with a translated name: their class name, which the audit trail stores, and that name."""
    for model in _models():
        if isinstance(model._meta.verbose_name, Promise):
            yield model.__name__, kind_of(model)


def kind_named(name: str) -> str:
    """The translated name of a class name in the audit trail; the class name itself if the model is gone."""
    return dict(kinds()).get(name, name)


def list_named(name: str) -> str:
    """The name of the list of a class name in the audit trail; the class name itself if the model is gone."""
    return next((list_of(model) for model in _models() if model.__name__ == name), name)


def _models() -> list[type[Model]]:
    return [*apps.get_app_config("memories").get_models(), Group]
