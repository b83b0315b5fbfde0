"""`memoryhub-client`: the commands of this package, each a module of its own that is loaded when it is called."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn


@dataclass(frozen=True)
class Command:
    """A sub-command. `module` has `run(options)`, which returns the exit status; `configure` adds its own arguments.

    `extra` names the extra of this package that installs what the module needs.
    """

    name: str
    help: str
    module: str
    configure: Callable[[ArgumentParser], None] = lambda _: None
    extra: str = ""


def _for_whom(parser: ArgumentParser) -> None:
    parser.add_argument("--user", default="", help="whose memory it is, where the key is for all of a tenant")
    parser.add_argument("--agent", default="", help="the agent that asks")


def _of_hook(parser: ArgumentParser) -> None:
    _for_whom(parser)
    parser.add_argument(
        "--trajectories",
        action="store_true",
        help="also tell what the agent did: calls of tools, their results and exit codes",
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "mcp",
        "serve a hub's memory over stdio, for desktop clients of MCP",
        "memoryhub_client.mcp_proxy",
        configure=_for_whom,
        extra="mcp",
    ),
    Command(
        "hook",
        "give Claude Code or Codex its memory: a hook of theirs",
        "memoryhub_client.hook",
        configure=_of_hook,
    ),
)


class _Parser(ArgumentParser):
    """Ends with 1 where argparse has 2: of a hook that holds the agent up, and nothing that is called wrongly may."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named command; its exit status."""
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        module = import_module(command.module)
    except ModuleNotFoundError as error:
        if not command.extra or (error.name or "").startswith("memoryhub_client"):
            raise
        print(  # noqa: T201
            f"This command needs the extra '{command.extra}'. In the hub's repository: "
            f"pip install './clients/python[{command.extra}]'",
            file=sys.stderr,
        )
        return 1
    status: int = module.run(options)
    return status


def _parser() -> ArgumentParser:
    parser = _Parser(prog="memoryhub-client", description="Commands of Memory Hub's client.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(command.name, help=command.help, description=command.help)
        own.add_argument("--url", help="the hub's address (MEMORYHUB_URL, else http://127.0.0.1:8000)")
        own.add_argument("--key", help="a key of the hub (MEMORYHUB_KEY): better there, where no process list shows it")
        command.configure(own)
        own.set_defaults(command=command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
