"""Registration with Django: the app itself, and the admin with our own site."""

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig
from django.utils.translation import gettext_lazy as _

from memories.db import tenancy


class MemoriesConfig(AppConfig):
    name = "memories"
    verbose_name = _("Memory")
    default = True

    def ready(self) -> None:
        from memories import checks  # noqa: F401, PLC0415  (registers the system checks)

        if settings.COMMANDS_SERVE:
            tenancy.as_a_sweeper()


class HubAdminConfig(AdminConfig):
    # Here and not in memories.admin: that package imports models, which are not loaded at this point.
    default_site = "memories.admin.site.site.HubAdminSite"
    default = False

    def ready(self) -> None:
        super().ready()
        from memories.admin.site.site import register_all  # noqa: PLC0415  (models are loaded only now)

        register_all()
