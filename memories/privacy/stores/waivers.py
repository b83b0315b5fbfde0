"""Models, and fields of stores, that hold nothing personal, each with the reason. The hub's own say it beside their
fields (memories/models/columns.py)."""

from dataclasses import dataclass

from django.apps import apps

from memories.models.columns import by_reason


@dataclass(frozen=True)
class Waiver:
    """A model, or these fields of a store; empty `fields` mean the whole model."""

    model: str
    reason: str
    fields: tuple[str, ...] = ()


# Tables of other packages.
_OF_OTHERS = (
    Waiver("auth.Group", "staff roles"),
    Waiver("auth.Permission", "part of the program"),
    Waiver("contenttypes.ContentType", "part of the program"),
    Waiver("sessions.Session", "a random key", ("session_key",)),
    Waiver("account.EmailAddress", "of staff; not written"),
    Waiver("account.EmailConfirmation", "of staff; not written"),
    Waiver("mfa.Authenticator", "second factors of staff, encrypted"),
    Waiver("socialaccount.SocialAccount", "staff as their identity provider knows them"),
    Waiver("socialaccount.SocialApp", "not written: the provider is in the settings"),
    Waiver("socialaccount.SocialToken", "not written"),
    Waiver(
        "axes.AccessAttempt",
        "of who gave a wrong password, until the lockout is over",
        ("user_agent", "ip_address", "http_accept"),
    ),
    Waiver("axes.AccessAttemptExpiration", "a time; not written"),
    Waiver("axes.AccessLog", "not written"),
    Waiver("axes.AccessFailureLog", "not written"),
    Waiver("django_q.OrmQ", "names the cluster", ("key",)),
    Waiver("django_q.Task", "names functions and the cluster", ("id", "func", "hook", "cluster")),
    Waiver(
        "django_q.Schedule",
        "names functions and times",
        ("func", "hook", "schedule_type", "cron", "task", "cluster", "intended_date_kwarg"),
    ),
    Waiver("django_q.Success", "a view of django_q.Task"),
    Waiver("django_q.Failure", "a view of django_q.Task"),
)  # fmt: skip
WAIVERS = (
    *_OF_OTHERS,
    *(
        Waiver(model._meta.label, reason, fields)
        for model in apps.get_app_config("memories").get_models()
        for reason, fields in by_reason(model, "waived")
    ),
)
