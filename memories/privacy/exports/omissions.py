"""Fields that no export has, each with the reason; and the check that every field is exported or has one. The hub's own
tables say it beside their fields (memories/models/columns.py)."""

from dataclasses import dataclass

from django.apps import apps

from memories.models.columns import by_reason
from memories.privacy import registry
from memories.privacy.exports.profiles import SECTIONS


@dataclass(frozen=True)
class Omission:
    """Fields of a store that no export has, and why; empty `fields` mean the whole store."""

    store: str
    reason: str
    fields: tuple[str, ...] = ()


_TASKS = "work that waits or is done: ids of ours and counts"
_SIGN_INS = "sign-ins of staff"

# Stores that are no table of the hub's.
_OF_OTHERS = (
    Omission("memories.SentBlock.others", "that somebody else was told a fact of the person's: it is that one's"),
    Omission("memories.LoggedContext.others", "that somebody else was told a fact of the person's: it is that one's"),
    Omission("memories.Fact.allowed_users", "that somebody else's fact may be shown to the person: it is that one's"),
    Omission("django_q.OrmQ", _TASKS),
    Omission("django_q.Task", _TASKS),
    Omission("django_q.Schedule", _TASKS),
    Omission("admin.LogEntry", "what staff did, in names of fields"),
    Omission("sessions.Session", _SIGN_INS),
    Omission("axes.AccessAttempt", _SIGN_INS),
    Omission("files", "receipts and earlier copies of this file, listed in `cases` and `exports`"),
)
OMISSIONS = (
    *_OF_OTHERS,
    *(
        Omission(model._meta.label, reason, fields)
        for model in apps.get_app_config("memories").get_models()
        for reason, fields in by_reason(model, "omitted")
    ),
)


def undecided() -> list[str]:
    """Fields of registered stores that are neither exported nor omitted, as `app.Model.field`; `*` for a store without
    a model."""
    missing: list[str] = []
    for store in sorted({store.model for store in registry.all_stores()}):
        is_model = store.count(".") == 1
        names = [field.name for field in apps.get_model(store)._meta.concrete_fields] if is_model else ["*"]
        sections = [one for section in SECTIONS for one in (section, *section.inside) if one.store == store]
        exported = {name for section in sections for name in (*section.fields, *section.computed)}
        omitted = {name for omission in OMISSIONS if omission.store == store for name in omission.fields or ("*",)}
        missing += [f"{store}.{name}" for name in names if not (exported | omitted) & {name, "*"}]
    return missing
