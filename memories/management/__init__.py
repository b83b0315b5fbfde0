"""What all commands of the hub share."""

from django.core.management.base import BaseCommand

from memories.checks import SETTINGS


class HubCommand(BaseCommand):
    """A command that checks the settings before it starts.

    Django's own checks are about the code, and load the admin and the API: half of the start of most commands.
    """

    requires_system_checks = [SETTINGS]


def counted(number: int, one: str, many: str = "") -> str:
    """ "1 conversation", "2 conversations"; `many` where it is not `one` with an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
