"""What FakeMemoryHub does with memory files, the diary, groups of people, and the items of the store."""

import base64
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

Row = dict[str, Any]
WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]")
LINES = 2_000
FOUND = 10
# Of globs, longest first.
_PART = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|\{[^{}]*\}|.", re.DOTALL)


@dataclass
class RefusedCall(Exception):
    """A problem document to come; `members` are those of its code."""

    status: int
    code: str
    detail: str = ""
    retry_after: float | None = None
    members: Row = field(default_factory=dict)


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def words(text: str) -> set[str]:
    return set(WORD.findall(text.lower()))


def page(rows: list[Row]) -> Row:
    return {"next": None, "previous": None, "results": rows}


class FakeFiles:
    """Files with their versions, by person, agent and path. It judges no text, and has no first file."""

    def __init__(self) -> None:
        super().__init__()
        # (user_id, agent_id, path) → its versions, the newest last.
        self.files: dict[tuple[str, str, str], list[Row]] = {}

    def _write_file(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        before = self._checked(asked)
        self._check_place(given)
        self._add(given, "write", given["content"], "utf-8")
        return 200 if before else 201, self._stored(given, created=before is None)

    def _edit_file(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        before = self._checked(asked)
        if before is None:
            raise _no_file()
        if before["encoding"] != "utf-8":
            raise RefusedCall(409, "binary_file")
        text, old = before["content"], given["old_string"]
        found = text.count(old)
        if not found:
            stem = old.removesuffix("\n")
            newline_only = stem not in ("", old) and text.endswith(stem)
            without = text.count(stem) if newline_only else 0
            members = {"occurrences": 0, "newline_only": newline_only, "occurrences_without_newline": without}
            raise RefusedCall(404, "text_not_found", members=members)
        if found > 1 and not given.get("replace_all"):
            raise RefusedCall(409, "text_not_unique", members={"occurrences": found})
        self._add(given, "edit", text.replace(old, given["new_string"]), "utf-8")
        return 200, {**self._stored(given), "occurrences": found}

    def _read_file(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        found = self._present(given)
        if found is None:
            raise _no_file()
        offset, limit = int(given.get("offset", 0)), int(given.get("limit", LINES))
        lines = found["content"].splitlines(keepends=True) if found["encoding"] == "utf-8" else []
        blank = not found["content"].strip()
        if offset and offset >= len(lines) and not blank:
            raise RefusedCall(400, "offset_beyond_end", members={"offset": offset, "total_lines": len(lines)})
        shown = lines[offset : offset + limit]
        end = offset + len(shown)
        window: Row = {
            "content": "".join(shown).replace("\r\n", "\n") if lines else found["content"],
            "total_lines": len(lines),
            "start_line": offset + 1 if shown else None,
            "end_line": end if shown else None,
            "next_offset": end if shown and end < len(lines) else None,
        }
        return 200, {**self._file(given), **window, "blank": blank}

    def _list_files(self, asked: Any) -> tuple[int, Any]:
        folder = _folder(asked.given.get("path", "/"))
        found: dict[str, Row] = {}
        for path, entry in self._entries(asked.given, folder):
            name, slash, _ = path[len(folder) :].partition("/")
            nested: Row = {
                "path": f"{folder}{name}/", "is_dir": True, "size": 0, "modified_at": None, "version": None,
                "locked": False,
            }  # fmt: skip
            found.setdefault(name + slash, nested if slash else entry)
        return 200, {"next": None, "previous": None, "results": [found[name] for name in sorted(found)]}

    def _glob_files(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        folder = _folder(given.get("path") or "/")
        fits = _finder(given["pattern"], folder)
        found = [entry for path, entry in self._entries(given, folder) if fits(path)]
        return 200, {"results": sorted(found, key=lambda one: one["modified_at"], reverse=True), "truncated": False}

    def _grep_files(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        most, place = given.get("max_count"), given.get("path") or "/"
        folder = _folder(place)
        fits = _finder(given["glob"], folder) if given.get("glob") else None
        # A file alone, or a folder's.
        is_file = self._present({**given, "path": place}) is not None
        named = [place] if is_file else [path for path, _ in self._entries(given, folder)]
        lines: list[Row] = []
        for path in sorted(path for path in named if fits is None or fits(path)):
            version = self.files[_key(given, path)][-1]
            texts = version["content"].split("\n") if version["encoding"] == "utf-8" else []
            lines += [
                {"path": path, "line": number, "text": text}
                for number, text in enumerate(texts, 1)
                if given["pattern"] in text
            ]
        is_cut = most is not None and len(lines) > most
        return 200, {"results": lines[:most] if is_cut else lines, "truncated": is_cut}

    def _upload_files(self, asked: Any) -> tuple[int, Any]:
        results = []
        for one in asked.given["files"]:
            named = {**asked.given, "path": one["path"]}
            answer: Row = {"path": one["path"], "error": None, "detail": None, "version": None, "redactions": 0}
            try:
                self._check_place(named)
                self._add(named, "upload", *_content(one))
                answer["version"] = len(self.files[_key(named)])
            except RefusedCall as refused:
                code = {400: "invalid_path", 409: "is_directory"}[refused.status]
                answer |= {"error": code, "detail": refused.detail or code}
            results.append(answer)
        return 200, {"results": results}

    def _download_files(self, asked: Any) -> tuple[int, Any]:
        return 200, {"results": [self._downloaded({**asked.given, "path": path}) for path in asked.given["paths"]]}

    def _downloaded(self, named: Row) -> Row:
        names = ("content", "encoding", "version", "created_at", "modified_at", "error")
        answer: Row = {"path": named["path"], **dict.fromkeys(names)}
        if found := self._present(named):
            shown = {name: found[name] for name in ("content", "encoding", "version")}
            file = self._file(named)
            return {**answer, **shown, "created_at": file["created_at"], "modified_at": file["modified_at"]}
        if _fault(named["path"]):
            return {**answer, "error": "invalid_path"}
        return {**answer, "error": "is_directory" if self._is_folder(named) else "file_not_found"}

    def _delete_file(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        paths = [given["path"].removesuffix("/")] if self._checked(asked) else []
        paths += [path for path, _ in self._entries(given, _folder(given["path"]))]
        if not paths:
            raise _no_file()
        for path in paths:
            self._add({**given, "path": path}, "delete", "", "utf-8")
        return 200, {"path": given["path"], "deleted": len(paths)}

    def _list_file_history(self, asked: Any) -> tuple[int, Any]:
        versions = self.files.get(_key(asked.given))
        if versions is None:
            raise _no_file()
        return 200, {"next": None, "previous": None, "results": versions[::-1]}

    def _restore_file(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        before = self._checked(asked)
        versions = self.files.get(_key(given), [])
        found = next((one for one in versions if one["version"] == given["version"]), None)
        if found is None:
            raise _no_file()
        if found["verb"] == "delete":
            raise RefusedCall(409, "conflict")
        self._check_place(given)
        self._add(given, "restore", found["content"], found["encoding"], restored=found["version"])
        return 200, self._stored(given, created=before is None)

    def _checked(self, asked: Any) -> Row | None:
        """The file as it is now, if If-Match names it."""
        if fault := _fault(asked.given["path"]):
            raise RefusedCall(400, "invalid_path", fault)
        before = self._present({**asked.given, "path": asked.given["path"].removesuffix("/")})
        is_version = f'"{before["version"] if before else 0}"'
        if asked.headers.get("if-match", is_version) != is_version:
            raise RefusedCall(412, "version_mismatch")
        return before

    def _check_place(self, given: Row) -> None:
        path = given["path"]
        if fault := _fault(path):
            raise RefusedCall(400, "invalid_path", fault)
        above = [path[: found.start()] for found in re.finditer("/", path)][1:]
        if self._is_folder(given) or any(self._present({**given, "path": one}) for one in above):
            raise RefusedCall(409, "is_directory")

    def _is_folder(self, given: Row) -> bool:
        return any(True for _ in self._entries(given, _folder(given["path"])))

    def _present(self, given: Row) -> Row | None:
        versions = self.files.get(_key(given))
        return versions[-1] if versions and versions[-1]["verb"] != "delete" else None

    def _entries(self, given: Row, folder: str) -> Iterator[tuple[str, Row]]:
        user_id, agent_id, _ = _key({**given, "path": ""})
        for user, agent, path in list(self.files):
            named = {**given, "path": path}
            if (user, agent) == (user_id, agent_id) and path.startswith(folder) and self._present(named):
                file = self._file(named)
                entry = {name: file[name] for name in ("path", "size", "modified_at", "version", "locked")}
                yield path, {**entry, "is_dir": False}

    def _add(self, given: Row, verb: str, content: str, encoding: str, *, restored: int | None = None) -> None:
        versions = self.files.setdefault(_key(given), [])
        size = len(base64.b64decode(content) if encoding == "base64" else content.encode())
        versions.append({
            "version": len(versions) + 1, "verb": verb, "actor": {"kind": "key", "id": "fake"}, "trust": "user",
            "content": content, "encoding": encoding, "size": size, "restored": restored, "reason": None,
            "created_at": now(),
        })  # fmt: skip

    def _file(self, given: Row) -> Row:
        versions = self.files[_key(given)]
        last = versions[-1]
        begun = max((one["version"] for one in versions if one["verb"] == "delete"), default=0)
        return {
            "path": given["path"], "size": last["size"], "encoding": last["encoding"], "version": last["version"],
            "locked": False, "written_by": "key", "trust": "user", "created_at": versions[begun]["created_at"],
            "modified_at": last["created_at"], "expires_at": None,
        }  # fmt: skip

    def _stored(self, given: Row, *, created: bool = False) -> Row:
        return {**self._file(given), "created": created, "occurrences": 0, "redactions": 0}


class FakeDiary:
    """Entries by person and agent, the newest last. It judges no text."""

    def __init__(self) -> None:
        super().__init__()
        self.diary: dict[str, Row] = {}

    def _write_diary_entry(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        entry = {
            "id": str(uuid.uuid4()), "user_id": given["user_id"], "agent_id": _agent(given) or None,
            "topic": given.get("topic") or None, "content": given["content"], "trust": "user", "created_at": now(),
        }  # fmt: skip
        self.diary[entry["id"]] = entry
        return 201, {**_without_person(entry), "redactions": 0}

    def _list_diary(self, asked: Any) -> tuple[int, Any]:
        given = asked.query
        sought = given.get("q", "").casefold().split()
        entries = [
            entry
            for entry in self._diary_of(given["user_id"], _agent(given))
            if given.get("topic") in (None, entry["topic"])
            and all(word in f"{entry['topic']} {entry['content']}".casefold() for word in sought)
        ]
        newest = entries[::-1][: int(given["last"])] if "last" in given else entries[::-1]
        return 200, {"next": None, "previous": None, "results": [_without_person(entry) for entry in newest]}

    def _delete_diary_entry(self, asked: Any) -> tuple[int, Any]:
        if self.diary.pop(asked.path["entry_id"], None) is None:
            raise RefusedCall(404, "not_found")
        return 204, b""

    def _diary_of(self, user_id: str, agent_id: str) -> list[Row]:
        named = (user_id, agent_id or None)
        return [one for one in self.diary.values() if (one["user_id"], one["agent_id"]) == named]


class FakeGroups:
    """Groups with their members and facts. A fact rests on the members who said it."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: dict[str, Row] = {}
        # Group → user_id → the membership, and id → the fact.
        self.members: dict[str, dict[str, Row]] = {}
        self.group_facts: dict[str, dict[str, Row]] = {}

    def _add_group(self, asked: Any) -> tuple[int, Any]:
        group = {"id": str(uuid.uuid4()), "name": asked.given["name"], "kind": asked.given.get("kind", "team"),
                 "created_at": now()}  # fmt: skip
        self.groups[group["id"]], self.members[group["id"]], self.group_facts[group["id"]] = group, {}, {}
        return 201, group

    def _list_groups(self, asked: Any) -> tuple[int, Any]:
        user_id = asked.query.get("user_id")
        found = [one for one in self.groups.values() if user_id is None or user_id in self.members[one["id"]]]
        return 200, page(found[::-1])

    def _get_group(self, asked: Any) -> tuple[int, Any]:
        return 200, self._group(asked)

    def _change_group(self, asked: Any) -> tuple[int, Any]:
        group = self._group(asked)
        group.update(asked.body)
        return 200, group

    def _delete_group(self, asked: Any) -> tuple[int, Any]:
        del self.groups[self._group(asked)["id"]]
        return 204, b""

    def _list_group_members(self, asked: Any) -> tuple[int, Any]:
        return 200, page(list(self.members[self._group(asked)["id"]].values()))

    def _set_group_member(self, asked: Any) -> tuple[int, Any]:
        members, user_id = self.members[self._group(asked)["id"]], asked.given["user_id"]
        is_new = user_id not in members
        since = now() if is_new else members[user_id]["created_at"]
        may_write = asked.given.get("may_write", True)
        members[user_id] = {"user_id": user_id, "may_write": may_write, "created_at": since}
        return 201 if is_new else 200, members[user_id]

    def _remove_group_member(self, asked: Any) -> tuple[int, Any]:
        if self.members[self._group(asked)["id"]].pop(asked.given["user_id"], None) is None:
            raise RefusedCall(404, "not_found")
        return 204, b""

    def _list_group_facts(self, asked: Any) -> tuple[int, Any]:
        facts = self.group_facts[self._group(asked)["id"]].values()
        return 200, page(sorted(facts, key=lambda one: str(one["said_at"]), reverse=True))

    def _add_group_fact(self, asked: Any) -> tuple[int, Any]:
        given, group_id = asked.given, self._group(asked)["id"]
        member = self.members[group_id].get(given["user_id"])
        if member is None or not member["may_write"]:
            raise RefusedCall(409, "read_only_member" if member else "not_a_member")
        stated, at = {"content": given["content"], "about_user_id": given.get("about_user_id")}, now()
        kept = self.group_facts[group_id]
        existing = [one for one in kept.values() if _statement(one) == _statement(stated)]
        fact = existing[0] if existing else {"id": str(uuid.uuid4()), **stated, "said_by": [], "created_at": at}
        by = sorted({*fact["said_by"], given["user_id"]})
        fact.update(said_by=by, said_by_count=len(by), said_at=at)
        kept[fact["id"]] = fact
        return 200 if existing else 201, {**fact, "redactions": 0}

    def _delete_group_fact(self, asked: Any) -> tuple[int, Any]:
        kept, fact_id = self.group_facts[self._group(asked)["id"]], asked.path["fact_id"]
        user_id = asked.query.get("user_id")
        if fact_id not in kept or user_id not in (None, *kept[fact_id]["said_by"]):
            raise RefusedCall(404, "not_found")
        left = [one for one in kept[fact_id]["said_by"] if user_id not in (None, one)]
        if left:
            kept[fact_id].update(said_by=left, said_by_count=len(left))
        else:
            del kept[fact_id]
        return 204, b""

    def _shared_with(self, user_id: str) -> list[tuple[Row, Row]]:
        """Group and fact, of the groups of which the person is a member."""
        own = [one for one in self.groups.values() if user_id in self.members[one["id"]]]
        return [(group, fact) for group in own for fact in self.group_facts[group["id"]].values()]

    def _group(self, asked: Any) -> Row:
        if asked.path["group_id"] not in self.groups:
            raise RefusedCall(404, "not_found")
        return self.groups[asked.path["group_id"]]


def _agent(given: Row) -> str:
    return str(given.get("agent_id") or "").lower()


def _without_person(entry: Row) -> Row:
    return {name: value for name, value in entry.items() if name != "user_id"}


def _statement(fact: Row) -> tuple[str, Any]:
    return str(fact["content"]).casefold(), fact["about_user_id"]


class FakeStore:
    """Items of the store. A search ranks by words; it judges no value, and namespaces name nobody."""

    def __init__(self) -> None:
        super().__init__()
        # (namespace with periods, key) → the item.
        self.items: dict[tuple[str, str], Row] = {}

    def _get_store_item(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        refresh = str(given.get("refresh_ttl", True)).lower() != "false"
        return 200, self._item(given["namespace"].split("."), given["key"], refresh=refresh)

    def _put_store_item(self, asked: Any) -> tuple[int, Any]:
        self._put(asked.given)
        return 204, b""

    def _delete_store_item(self, asked: Any) -> tuple[int, Any]:
        self.items.pop((asked.given["namespace"], asked.given["key"]), None)
        return 204, b""

    def _search_store_items(self, asked: Any) -> tuple[int, Any]:
        return 200, {"items": self._search_items(asked.given, asked.given["namespace_prefix"])}

    def _list_store_namespaces(self, asked: Any) -> tuple[int, Any]:
        given = asked.given
        ends = [(name, given[name]) for name in ("prefix", "suffix") if given.get(name)]
        return 200, {"namespaces": self._namespaces(given, ends)}

    def _batch_store(self, asked: Any) -> tuple[int, Any]:
        """First the reads, then the writes, the last for each key."""
        results = []
        for one in asked.given["operations"]:
            answer: Row = {"item": None, "items": None, "namespaces": None}
            if one["op"] == "get":
                answer["item"] = self._item(one["namespace"], one["key"], refresh=one.get("refresh_ttl", True))
            elif one["op"] == "search":
                answer["items"] = self._search_items(one, one["namespace"])
            elif one["op"] == "list_namespaces":
                ends = [(found["match_type"], found["path"]) for found in one.get("match_conditions", ())]
                answer["namespaces"] = self._namespaces(one, ends)
            results.append(answer)
        for one in asked.given["operations"]:
            if one["op"] == "put":
                self._put(one)
            elif one["op"] == "delete":
                self.items.pop((".".join(one["namespace"]), one["key"]), None)
        return 200, {"results": results}

    def _put(self, given: Row) -> None:
        path = (".".join(given["namespace"]), given["key"])
        before = self.items.get(path)
        kept = before["created_at"] if before and _is_live(before) else now()
        item = {"namespace": given["namespace"], "key": given["key"], "value": given["value"]}
        times = {"created_at": kept, "updated_at": now(), "ttl": given.get("ttl")}
        self.items[path] = _refreshed({**item, **times, "index": given.get("index")})

    def _item(self, namespace: list[str], key: str, *, refresh: bool) -> Row | None:
        found = self.items.get((".".join(namespace), key))
        if found is None or not _is_live(found):
            return None
        if refresh:
            _refreshed(found)
        return _shown(found)

    def _search_items(self, given: Row, prefix: list[str]) -> list[Row]:
        depth, wanted = len(prefix), given.get("filter") or {}
        found = [
            one
            for one in self.items.values()
            if one["namespace"][:depth] == prefix and _is_live(one) and _matches(one["value"], wanted)
        ]
        found.sort(key=lambda one: one["updated_at"], reverse=True)
        asks = words(given.get("query") or "")
        scores = {id(one): _score(asks, one) for one in found} if asks else {}
        found.sort(key=lambda one: -(scores.get(id(one)) or 0.0))
        offset, limit = given.get("offset") or 0, given.get("limit") or FOUND
        shown = found[offset : offset + limit]
        if given.get("refresh_ttl") is not False:
            for one in shown:
                _refreshed(one)
        return [{**_shown(one), "score": scores.get(id(one))} for one in shown]

    def _namespaces(self, given: Row, ends: list[tuple[str, list[str]]]) -> list[list[str]]:
        found = {tuple(one["namespace"]) for one in self.items.values() if _is_live(one)}
        named = [labels for labels in found if all(_fits(labels, kind, path) for kind, path in ends)]
        cut = sorted({labels[: given.get("max_depth") or None] for labels in named})
        offset = given.get("offset") or 0
        return [list(labels) for labels in cut[offset : offset + (given.get("limit") or 100)]]


def _no_file() -> RefusedCall:
    return RefusedCall(404, "file_not_found", "There is no file at this path.")


def _key(given: Row, path: str | None = None) -> tuple[str, str, str]:
    own = given["path"] if path is None else path
    return str(given["user_id"]), str(given.get("agent_id") or "").lower(), own


def _folder(path: str) -> str:
    return path if path.endswith("/") else f"{path}/"


def _fault(path: str) -> str:
    if not path.startswith("/"):
        return "A path begins with a slash, like /memories/notes.md."
    parts = path[1:].removesuffix("/").split("/")
    return "A path has no empty parts, and neither `.` nor `..`." if {"", ".", ".."} & set(parts) else ""


def _content(one: Row) -> tuple[str, str]:
    if one.get("encoding", "utf-8") == "utf-8":
        return one["content"], "utf-8"
    try:
        return base64.b64decode(one["content"], validate=True).decode(), "utf-8"
    except ValueError:
        return one["content"], "base64"


def _expression(pattern: str) -> str:
    """The glob as a regular expression: `**` crosses folders, `*` and `?` do not, and none begins with a dot."""
    made: list[str] = []
    before = "/"
    for part in _PART.findall(pattern):
        begin = r"(?!\.)" if before.endswith("/") else ""
        if part == "**/":
            made.append(r"(?:(?!\.)[^/]+/)*")
        elif part == "**":
            made.append(rf"{begin}[^/]*(?:/(?!\.)[^/]*)*")
        elif part == "*":
            made.append(f"{begin}[^/]*")
        elif part == "?":
            made.append(f"{begin}[^/]")
        elif part.startswith("[") and len(part) > 1:
            made.append(begin + part.replace("[!", "[^", 1))
        elif part.startswith("{") and len(part) > 1:
            made.append("(?:" + "|".join(_expression(one) for one in part[1:-1].split(",")) + ")")
        else:
            made.append(re.escape(part))
        before = part
    return "".join(made)


def _finder(pattern: str, folder: str) -> Callable[[str], bool]:
    """Whether a path fits: its name at any depth, or with a slash in the pattern all below the folder."""
    wanted = re.compile(_expression(pattern.removeprefix("/")), re.DOTALL)
    if "/" in pattern:
        return lambda path: wanted.fullmatch(path[len(folder) :]) is not None
    return lambda path: wanted.fullmatch(path.rsplit("/", 1)[-1]) is not None


def _shown(item: Row) -> Row:
    return {name: item[name] for name in ("namespace", "key", "value", "created_at", "updated_at")}


def _is_live(item: Row) -> bool:
    return item["expires"] is None or item["expires"] > datetime.now(timezone.utc)


def _refreshed(item: Row) -> Row:
    span = None if item["ttl"] is None else timedelta(minutes=item["ttl"])
    item["expires"] = None if span is None else datetime.now(timezone.utc) + span
    return item


def _score(asks: set[str], item: Row) -> float | None:
    """None where nothing of the item is embedded."""
    index = item["index"]
    if index is False or index == []:
        return None
    value = item["value"]
    searched = value if index is None else [value.get(name.partition(".")[0].partition("[")[0]) for name in index]
    return len(asks & words(str(searched))) / len(asks)


def _matches(value: Any, wanted: Row) -> bool:
    return all(_compares(value.get(name) if isinstance(value, dict) else None, one) for name, one in wanted.items())


def _compares(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        return bool(found == wanted)
    if not any(name.startswith("$") for name in wanted):
        return isinstance(found, dict) and _matches(found, wanted)
    return all(_holds(found, name, operand) for name, operand in wanted.items())


def _holds(found: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(found == operand) is (name == "$eq")
    if name not in ("$gt", "$gte", "$lt", "$lte"):
        raise RefusedCall(400, "invalid", f"Unsupported operator: {name}")
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, operand))
    if not numbers and not (isinstance(found, str) and isinstance(operand, str)):
        return False
    if found == operand:
        return name in ("$gte", "$lte")
    return bool(found > operand) is (name in ("$gt", "$gte"))


def _fits(labels: tuple[str, ...], kind: str, path: list[str]) -> bool:
    if len(labels) < len(path):
        return False
    part = labels[: len(path)] if kind == "prefix" else labels[-len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
