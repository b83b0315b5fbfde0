"""`manage.py import_memories`: store what people already have: the conversations of an export, as POST /turns would,
each message once; the memories of another system, as PUT /memory would, each once; its files and items as they are."""

import sqlite3
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import psycopg
from django.core.management.base import CommandError

from memories.exceptions import Erased, NotFound, PersonRestricted
from memories.files import paths
from memories.imports import sources
from memories.imports.findings import UnreadableError
from memories.imports.namespaces import REST, USER
from memories.imports.places import Given, opened
from memories.imports.records import NO_TEXT
from memories.imports.runs import Run, UnknownSourceError, UnsaidPersonError
from memories.imports.sources import AUTO, CHATS, SOURCES
from memories.management import HubCommand, counted
from memories.management.arguments import external_id, tenant_of
from memories.models import Tenant

DEEPAGENTS, LANGGRAPH = "deepagents", "langgraph"
_OF_AGENTS = CHATS | {DEEPAGENTS, "markdown"}
# After so many records it says how far it is: a conversation can be large.
_TOLD, _TOLD_OF_CONVERSATIONS = 1000, 100


class Command(HubCommand):
    help = (
        "Store the conversations of an export with their dates, through the same checks as POST /turns, or the "
        "memories of another system as facts, its files as memory files, or its items as items of the store. What is "
        "there already is not stored again: after a break run it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file",
            nargs="+",
            help="An export as it comes: its ZIP, folder or files. Of another system its file, folder or DSN.",
        )
        parser.add_argument(
            "--from",
            dest="source",
            choices=[AUTO, *SOURCES],
            default=AUTO,
            help="Without it the source is recognised by what the files hold.",
        )
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument("--user", type=external_id, help="Whose those are that name nobody: the caller's user_id.")
        parser.add_argument("--table", default="", help="With a DSN: the table, if it is not called as usual.")
        parser.add_argument(
            "--namespace",
            default="",
            help="Of langgraph and deepagents: which namespaces, and whose they are, such as 'memories,{user}' or "
            "'{user},{agent},*'.",
        )
        parser.add_argument(
            "--as",
            dest="form",
            choices=("facts", "items"),
            default="facts",
            help="Of langgraph: what its items become. Items keep their namespace, which says whose they are.",
        )
        parser.add_argument("--folder", default="/memories", help="Of files: the folder of the hub that they go to.")
        parser.add_argument(
            "--agent",
            type=external_id,
            help="Whose files and conversations they are, '' for requests that name no agent. Without it a folder of "
            "deepagents is for the agent of its name.",
        )
        parser.add_argument(
            "--zone",
            type=zone,
            help="Of times that name no zone, such as Europe/Berlin. Without it UTC, or that of "
            "this machine where the other system writes its machine's time.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Say what would be stored, and store nothing.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant = tenant_of(options["tenant"])
        if paths.fault_of_folder(options["folder"]):
            raise CommandError("--folder: give a folder of memory files, such as /memories.")
        files = options["file"] if isinstance(options["file"], list) else [options["file"]]
        given = {
            "table": options["table"],
            "namespace": options["namespace"],
            "to_folder": options["folder"],
            "agent": options["agent"],
            "user": options["user"] or "",
            "zone": options["zone"],
        }
        try:
            with opened(files, **given) as found:
                source = self._source(found, options)
                _check(source, options)
                self._import(tenant, found, source, options)
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError, sqlite3.Error, psycopg.Error) as error:
            raise CommandError(f"It cannot be read: {_why(error)}.") from None

    def _source(self, given: Given, options: dict[str, Any]) -> str:
        if options["source"] != AUTO:
            return str(options["source"])
        source = sources.detected(given)
        if not source:
            expected = ", ".join(sorted(SOURCES))
            raise CommandError(f"Nothing was recognised: {sources.found_instead(given)}. Sources are {expected}.")
        if source == DEEPAGENTS and options["form"] == sources.ITEMS:
            source = LANGGRAPH
        self.stdout.write(f"This is of {source}.")
        return source

    def _import(self, tenant: Tenant, given: Given, source: str, options: dict[str, Any]) -> None:
        as_items, dry_run = options["form"] == sources.ITEMS, options["dry_run"]
        run = Run(tenant, given, source, as_items=as_items, dry_run=dry_run, is_trusted=True, tell=self.stderr.write)
        taken = 0
        try:
            for taken in run.steps():
                if not taken % (_TOLD_OF_CONVERSATIONS if run.is_of_conversations else _TOLD):
                    self.stderr.write(
                        f"… {run.conversations.done['conversations'] or taken} of {run.expected or 'all'}"
                    )
        except UnsaidPersonError:
            raise CommandError(
                f"--user: the items are in several namespaces. Say with --namespace which are this person's, such as "
                f"'memories,NAME', or '{REST}' for all; or which part names the person, such as 'memories,{USER}'."
            ) from None
        except UnknownSourceError as error:
            self._say(run, dry_run=dry_run)
            hint = " Items can be kept as they are: --as items." if source == LANGGRAPH and not as_items else ""
            raise CommandError(f"Nothing of {source} was recognised: {error}.{hint}") from None
        except (Erased, NotFound, PersonRestricted) as error:
            place = run.conversations.done["conversations"]
            raise CommandError(f"Conversation {place}: {error.detail}" if place else error.detail) from None
        except (ValueError, RecursionError, sqlite3.Error, psycopg.Error) as error:
            self._say(run, dry_run=dry_run)
            raise CommandError(f"It is not as it should be, and cannot be read after {taken}: {_why(error)}.") from None
        if self._say(run, dry_run=dry_run) or run.conversations.done["refused"]:
            raise CommandError("What was refused is not stored. Mend it and run the command again.")

    def _say(self, run: Run, *, dry_run: bool) -> Counter[str]:
        """Returns what was refused."""
        for line in _lines(run, "would be stored" if dry_run else "stored"):
            self.stdout.write(line)
        left_out, refused = run.counted()
        for reason, count in sorted(left_out.items()):
            self.stdout.write(f"{count} left out: {reason}")
        if left_out[NO_TEXT] and run.source == LANGGRAPH and not run.items.done["found"]:
            self.stdout.write("Items without a text can be kept as they are: --as items.")
        for reason, count in sorted(refused.items()):
            self.stderr.write(f"{count} refused: {reason}")
        return refused


def _why(error: Exception) -> str:
    """The messages of others can show what was stored, or the password of the database."""
    return str(error) if isinstance(error, UnreadableError) else type(error).__name__


def zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ArgumentTypeError("give a time zone, such as Europe/Berlin") from error


def _check(source: str, options: dict[str, Any]) -> None:
    as_items = options["form"] == sources.ITEMS
    if options["agent"] is not None and (source not in _OF_AGENTS or as_items):
        raise CommandError("--agent: only files and conversations are given to an agent.")
    if as_items and source != LANGGRAPH:
        raise CommandError("--as items: only the items of langgraph can become items.")
    if as_items and options["user"]:
        raise CommandError("--user: items are whose their namespace says. Set the patterns on the tenant's page.")
    if as_items or options["user"] or SOURCES[source].names_people:
        return
    if source in sources.NAMESPACED and USER not in options["namespace"]:
        raise CommandError(f"--user or --namespace with {USER}: say whose these are.")
    if source not in sources.NAMESPACED:
        raise CommandError("--user: say whose these are.")


def _lines(run: Run, stored: str) -> Iterator[str]:
    said, facts, files, items = (one.done for one in (run.conversations, run.facts, run.files, run.items))
    if said["conversations"] or run.is_of_conversations:
        yield (
            f"{counted(said['conversations'], 'conversation')}: {counted(said['accepted'], 'message')} {stored}, "
            f"{_there(said)}, {_cut_out(said)}, {counted(said['refused'], 'conversation')} refused."
        )
    if said["left"]:
        turns = counted(said["left"], "turn is", "turns are")
        yield f"{turns} of a branch that the conversation has left since."
    for name in run.rows.stored | run.rows.there:
        yield f"{name}: {run.rows.stored[name]} {stored}, {counted(run.rows.there[name], 'was', 'were')} there already."
    if found := run.found("memories"):
        yield (
            f"{counted(found, 'memory', 'memories')}: {counted(facts['facts'], 'fact')} and "
            f"{counted(facts['sections'], 'section of a profile', 'sections of profiles')} {stored}, "
            f"{counted(facts['waiting'], 'waits', 'wait')} for an operator, {_there(facts)}."
        )
    if found := run.found("files"):
        yield f"{counted(found, 'file')}: {files['stored']} {stored}, {_there(files)}, {_cut_out(files)}."
        yield from _whose_files(run)
    if found := run.found("items"):
        yield f"{counted(found, 'item')}: {items['stored']} {stored}, {_there(items)}."


def _there(done: Counter[str]) -> str:
    return f"{counted(done['duplicates'], 'was', 'were')} there already"


def _cut_out(done: Counter[str]) -> str:
    return f"{counted(done['redactions'], 'secret')} cut out"


def _whose_files(run: Run) -> Iterator[str]:
    """Lines on the agents: a folder that is none of an agent's would be one's by its name."""
    agent = run.given.agent
    by_name = run.source == DEEPAGENTS and run.given.folder is not None and agent is None
    for name, count in sorted(run.files.agents.items()):
        if name and by_name:
            yield f"{count} of the agent {name}, the name of the folder: --agent names another one"
        elif name or by_name or agent is not None:
            yield f"{count} of {f'the agent {name}' if name else 'no agent'}"
