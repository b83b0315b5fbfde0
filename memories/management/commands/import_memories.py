"""`manage.py import_memories`: store the conversations of a file, as POST /turns would, each message once, the memories
of another system, as PUT /memory would, each once, or its files and items as they are."""

import json
import sqlite3
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError

from memories.api.v1.turns.serializers import MAX_MESSAGES, TurnsSerializer, conversation_of
from memories.capture import ingest
from memories.capture.ingest import Conversation
from memories.exceptions import Erased, MemoryHubError, PersonRestricted
from memories.files import paths
from memories.management import HubCommand, imports, memory_stores
from memories.management.arguments import external_id, tenant_of
from memories.management.importing import Import
from memories.management.kept_stores import FileImport, ItemImport, is_folder, read_files, read_items
from memories.management.memory_stores import USER, StoreLocation
from memories.management.raw_documents import Outcome, RefusedDocumentError, checked
from memories.models import Tenant, Turn
from memories.text.secrets import effort

DEEPAGENTS = "deepagents"
# Bytes of the messages in one part: a request has its own beside them.
_PART = 8_000_000


class Command(HubCommand):
    help = (
        "Store the conversations of a file with their dates, through the same checks as POST /turns, or the memories "
        "of another system as facts, its files as memory files, or its items as items of the store. What is there "
        "already is not stored again: after a break run it again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "file", help="conversations.json of an export, or JSON lines; of another system its file, folder or DSN."
        )
        sources = [*imports.SOURCES, *memory_stores.STORES, DEEPAGENTS]
        parser.add_argument("--from", dest="source", choices=sources, required=True)
        parser.add_argument("--tenant", required=True, help="The tenant's slug.")
        parser.add_argument(
            "--user", type=external_id, help="Whose they are: the caller's user_id. JSON lines can name it themselves."
        )
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
        parser.add_argument(
            "--folder", default="/memories", help="Of deepagents: the folder of the hub that its files go to."
        )
        parser.add_argument(
            "--agent",
            type=external_id,
            help="Of deepagents: whose files they are, '' for requests that name no agent. Without it a folder is for "
            "the agent of its name.",
        )
        parser.add_argument("--dry-run", action="store_true", help="Say what would be stored, and store nothing.")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant, done, left_out = tenant_of(options["tenant"]), Counter[str](), Counter[str]()
        _check_agent(options)
        if options["source"] == DEEPAGENTS or options["form"] == "items":
            self._import_as_they_are(tenant, options)
            return
        source, file = options["source"], Path(options["file"])
        try:
            has_drawers = source == "mempalace" and imports.is_palace(file)
            if source in memory_stores.STORES and not has_drawers:
                self._import_memories(tenant, options)
                return
            if source != "jsonl" and not options["user"]:
                raise CommandError("--user: say whose conversations these are.")
            read = imports.drawers(file, left_out) if has_drawers else imports.read(source, file)
            for place, given in enumerate(read, start=1):
                self._import(tenant, place, given, done, options)
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError, sqlite3.Error) as error:
            # JSON's own message would quote no text, but a decoding error shows bytes.
            raise CommandError(
                f"The file is not as it should be after {done['conversations']} conversations."
            ) from error
        what = "would be stored" if options["dry_run"] else "stored"
        self.stdout.write(
            f"{done['conversations']} conversations: {done['accepted']} messages {what}, {done['duplicates']} were "
            f"there already, {done['redactions']} secrets cut out, {done['refused']} conversations refused."
        )
        self._say_why(left_out, Counter())
        if done["refused"]:
            raise CommandError("What was refused is not stored. Mend it in the file and run the command again.")

    def _import_as_they_are(self, tenant: Tenant, options: dict[str, Any]) -> None:
        source, user = options["source"], options["user"]
        place = StoreLocation(options["file"], options["table"], options["namespace"])
        if source == DEEPAGENTS:
            if not (user or USER in place.namespace):
                raise CommandError(f"--user or --namespace with {USER}: say whose files these are.")
            if paths.fault_of_folder(options["folder"]):
                raise CommandError("--folder: give a folder of memory files, such as /memories.")
            files = FileImport(tenant, dry_run=options["dry_run"])
            read = partial(read_files, place, files.refused, folder=options["folder"], agent=options["agent"])
            self._read(files, lambda: files.take(read(), user_id=user or ""))
            self._say("files", files, options, self._whose_files(files, place, options["agent"]))
            return
        if source != "langgraph":
            raise CommandError("--as items: only the items of langgraph can become items.")
        if user:
            raise CommandError("--user: items are whose their namespace says. Set the patterns on the tenant's page.")
        items = ItemImport(tenant, dry_run=options["dry_run"])
        self._read(items, lambda: items.take(read_items(place, items.refused)))
        self._say("items", items, options)

    def _read(self, kept: FileImport | ItemImport, take: Callable[[], None]) -> None:
        try:
            take()
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError, psycopg.Error) as error:
            # Their own messages can show what was stored, or the password of the database.
            raise CommandError(f"It cannot be read after {kept.done['found']}: {type(error).__name__}.") from None

    def _whose_files(self, files: FileImport, place: StoreLocation, agent: str | None) -> Iterator[str]:
        """Lines on the agents: a folder that is none of an agent's would be one's by its name."""
        by_name = is_folder(place) and agent is None
        for name, count in sorted(files.agents.items()):
            if name and by_name:
                yield f"{count} of the agent {name}, the name of the folder: --agent names another one"
            elif name or by_name or agent is not None:
                yield f"{count} of {f'the agent {name}' if name else 'no agent'}"

    def _say(
        self, what: str, kept: FileImport | ItemImport, options: dict[str, Any], whose: Iterable[str] = ()
    ) -> None:
        done, stored = kept.done, "would be stored" if options["dry_run"] else "stored"
        secrets = f", {done['redactions']} secrets cut out" if what == "files" else ""
        self.stdout.write(
            f"{done['found']} {what}: {done['stored']} {stored}, {done['duplicates']} were there already{secrets}."
        )
        for line in whose:
            self.stdout.write(line)
        self._say_why(kept.left_out, kept.refused)

    def _say_why(self, left_out: Counter[str], refused: Counter[str]) -> None:
        for reason, count in sorted(left_out.items()):
            self.stdout.write(f"{count} left out: {reason}")
        for reason, count in sorted(refused.items()):
            self.stderr.write(f"{count} refused: {reason}")
        if refused:
            raise CommandError("What was refused is not stored. Mend it and run the command again.")

    def _import_memories(self, tenant: Tenant, options: dict[str, Any]) -> None:
        source, dry_run = options["source"], options["dry_run"]
        if source == "mempalace" and not options["user"]:
            raise CommandError("--user: say whose memories these are.")
        if source == "langgraph" and not (options["user"] or USER in options["namespace"]):
            raise CommandError(f"--user or --namespace with {USER}: say whose memories these are.")
        place = StoreLocation(options["file"], options["table"], options["namespace"])
        importing = Import(tenant, user_id=options["user"] or "", dry_run=dry_run)
        try:
            importing.take(memory_stores.read(source, place, importing.refused))
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror}.") from error
        except (ValueError, RecursionError, sqlite3.Error, psycopg.Error) as error:
            # Their own messages can show what was stored, or the password of the database.
            taken = importing.done["memories"]
            raise CommandError(f"It cannot be read after {taken} memories: {type(error).__name__}.") from None
        done, what = importing.done, "would be stored" if dry_run else "stored"
        waiting = "" if dry_run else f", {done['waiting']} wait for an operator"
        self.stdout.write(
            f"{done['memories']} memories: {done['facts']} facts and {done['sections']} sections of profiles {what}"
            f"{waiting}, {done['duplicates']} were there already."
        )
        self._say_why(importing.left_out, importing.refused)

    def _import(self, tenant: Tenant, place: int, given: Outcome, done: Counter[str], options: dict[str, Any]) -> None:
        """One conversation; where it is refused, what comes before the part with the fault stays stored."""
        done["conversations"] += 1
        dry_run = options["dry_run"]
        try:
            if isinstance(given, RefusedDocumentError):
                raise given
            for part in _parts(_whose(given, options["user"])):
                conversation = conversation_of(checked(TurnsSerializer, part))
                done.update(_looked_up(tenant, conversation) if dry_run else _stored(tenant, conversation))
        except (Erased, PersonRestricted) as error:
            raise CommandError(f"Conversation {place}: {error.detail}") from None
        except RefusedDocumentError as error:
            done["refused"] += 1
            self.stderr.write(f"Conversation {place}: {error}")
        except MemoryHubError as error:
            done["refused"] += 1
            self.stderr.write(f"Conversation {place}: {error.code}")


def _check_agent(options: dict[str, Any]) -> None:
    if options["agent"] is not None and options["source"] != DEEPAGENTS:
        raise CommandError("--agent: only the files of deepagents are given to an agent.")


def _whose(given: dict[str, Any], user: str | None) -> dict[str, Any]:
    return {**given, "user_id": user} if user else given


def _parts(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The conversation in requests of the size that the API takes; none where nothing was said."""
    messages = given.get("messages")
    if not isinstance(messages, list):
        yield given
        return
    part: list[Any] = []
    size = 0
    for message in messages:
        own = len(json.dumps(message))
        if part and (len(part) == MAX_MESSAGES or size + own > _PART):
            yield {**given, "messages": part}
            part, size = [], 0
        part.append(message)
        size += own
    if part:
        yield {**given, "messages": part}


def _stored(tenant: Tenant, conversation: Conversation) -> dict[str, int]:
    # An export can be larger than a request: a transaction for each part, so that a break loses no more than one.
    with effort.bounded():
        [receipt] = ingest.store_conversations(tenant=tenant, conversations=[replace(conversation, flush=False)])
    return {"accepted": receipt.accepted, "duplicates": receipt.duplicates, "redactions": receipt.redactions}


def _looked_up(tenant: Tenant, conversation: Conversation) -> dict[str, int]:
    ids = {message.external_id for message in conversation.messages if message.external_id}
    user_id, agent_id, session_id = conversation.key
    turns = Turn.objects.filter(tenant=tenant, session__external_id=session_id, session__agent_id=agent_id)
    duplicates = turns.filter(end_user__external_id=user_id, external_id__in=ids).count()
    return {"accepted": len(conversation.messages) - duplicates, "duplicates": duplicates}
