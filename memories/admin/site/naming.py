"""Names of records and models in headings and messages. They never contain what end users wrote."""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib.auth.models import Group
from django.db.models import Model
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories import models

# Operators named these: their names are shown as written.
NAMED = (models.APIKey, Group, models.ManagementKey, models.Operator, models.Tenant)
# Lists that the sidebar calls by another name than their rows.
LISTS: dict[Any, Promise] = {
    models.AuditEvent: gettext_lazy("Audit trail"),
    models.LoggedContext: gettext_lazy("Log of contexts"),
}
HEAD, TAIL = 4, 6


def called(record: Model) -> str:
    """Like `End user 01a2…4846b5`: the model and a short id. Records that operators named have that name."""
    return str(record) if isinstance(record, NAMED) else f"{kind_of(record)} {short_id(record)}"


def named(record: Model, operator: Any) -> str:
    """The same for the page of a record alone, with the name of a person or session, for who may see these."""
    if isinstance(record, models.EndUser) and operator.has_perm("memories.view_enduser"):
        return f"{kind_of(record)} {record.display_name or record.external_id}"
    if isinstance(record, models.Session) and operator.has_perm("memories.view_session"):
        return f"{kind_of(record)} {record.external_id}"
    return called(record)


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
