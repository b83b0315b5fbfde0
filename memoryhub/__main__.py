"""`memoryhub COMMAND`, or manage.py in a checkout: one of the hub's commands, with the embedded PostgreSQL attached
unless DATABASE_URL names another server."""

import gc
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import FrameType

from django.core.management import execute_from_command_line

from memoryhub import allocator, embedded_postgres, roles

# `up` attaches by itself, once the port is its own. All others may read settings or rows.
WITHOUT_DATABASE = frozenset(
    {"up", "help", "version", "makemessages", "compilemessages", "collectstatic", "systemd_units"}
)
# New objects between two garbage collections. With Python's 700 they take a twelfth of the time in which the web
# server loads, and each request has several.
GARBAGE_AT_ONCE = 5_000


def main(arguments: list[str] | None = None) -> None:
    """Run the command that `arguments`, as in sys.argv, names."""
    gc.set_threshold(GARBAGE_AT_ONCE)
    allocator.use_one_arena()
    arguments = sys.argv if arguments is None else arguments
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    roles.choose_role(arguments[1] if len(arguments) > 1 else "help")
    for number in (signal.SIGTERM, signal.SIGHUP):
        # What is ignored stays ignored: that is what nohup is for.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    try:
        with _database(arguments):
            execute_from_command_line(arguments)
    except embedded_postgres.EmbeddedPostgresError as error:
        sys.exit(f"{Path(arguments[0]).name}: {error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def _database(arguments: list[str]) -> AbstractContextManager[None]:
    command = arguments[1] if len(arguments) > 1 else "help"
    asks_for_help = command.startswith("-") or "--help" in arguments
    # It needs the server for itself.
    to_a_moment = command == "restore" and any(argument.partition("=")[0] == "--to" for argument in arguments)
    if os.environ.get("DATABASE_URL", "").strip() or command in WITHOUT_DATABASE or asks_for_help or to_a_moment:
        return nullcontext()
    return embedded_postgres.attached(embedded_postgres.home_from_environ(os.environ))


def _leave(signum: int, _frame: FrameType | None) -> None:
    # Unwinds the stack, as Ctrl-C does: the default action would leave the server behind without a user.
    sys.exit(128 + signum)


if __name__ == "__main__":
    main()
