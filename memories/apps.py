"""Registration with Django: the app itself, and the admin with our own site, which is loaded where it is used."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin import site
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_dependencies
from django.core.checks import CheckMessage, Tags, register
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


class HubAdminConfig(SimpleAdminConfig):
    # Here and not in memories.admin: that package imports models, which are not loaded at this point.
    default_site = "memories.admin.site.site.HubAdminSite"
    default = False

    def ready(self) -> None:
        """Django's own would check only a site that somebody has used already."""
        register(check_dependencies, Tags.admin)
        register(_check_pages, Tags.admin)


def _check_pages(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    return site.check(app_configs)
