"""The README's examples, in order, against a fresh hub: each works, and prints what the page shows."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings

from memoryhub import embedded_postgres
from tests import homes
from tests.commands.hub import RUNNING, Hub, wait_until
from tests.scratch import scratch_folder

README = (settings.BASE_DIR / "README.md").read_text(encoding="utf-8")
USE = README.split("\n## Use\n")[1].split("\n## ")[0]
FENCED = re.findall(r"^```(\w*)\n(.*?)\n```$", USE, flags=re.MULTILINE | re.DOTALL)
BLOCKS = [block for language, block in FENCED if not language]
AGENT = "docs/examples/agent.py"
MAKES_KEY = re.compile(r"KEY=\$\(\.venv/bin/python (manage\.py .*)\)")
(SHOWN,) = (block for block in BLOCKS if block.startswith("<memory>"))
FACT = re.compile(r"^- \[\w+\] .*\n", re.MULTILINE)
BY_MODEL = "".join(f"{line}\n" for line in re.findall(r"`(- \[\w+\] [^`]+)`", USE))
# What the page says to add for the conversation so far.
(INCLUDE,) = re.findall(r"""`"session_id"` and `("include": \[[^`]+\])`""", USE)
DAY = re.compile(r"^\d{4}-\d\d-\d\d:", re.MULTILINE)


class Reader:
    """Somebody who does what the page says."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._key = hub, ""
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def does(self, block: str) -> Any:
        """The answer to a block: of a command what it prints."""
        if command := MAKES_KEY.fullmatch(block):
            self._key = self._run(shlex.split(command[1]))
            return self._key
        return self._curl(block)

    def talks(self, *lines: str) -> str:
        """What the page's agent prints; the client is on its path, as if it were installed."""
        return self._run([AGENT], said="".join(f"{line}\n" for line in [*lines, ""]))

    def _run(self, arguments: list[str], *, said: str = "") -> str:
        own = {"DJANGO_SETTINGS_MODULE": "memoryhub.settings", "MEMORYHUB_HOME": str(self._hub.home)}
        own |= {"MEMORYHUB_KEY": self._key, "MEMORYHUB_URL": f"http://127.0.0.1:{self._hub.port}"}
        own |= {"PYTHONPATH": str(settings.BASE_DIR / "clients/python/src"), "OPENAI_API_KEY": ""}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env={**os.environ, **own},
            input=said,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    def _curl(self, line: str) -> Any:
        """Without needing curl itself."""
        words = shlex.split(line.replace("$KEY", self._key).replace(":8000", f":{self._hub.port}"))
        assert words[0] == "curl"
        headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
        data = words[words.index("-d") + 1].encode()
        with self._opener.open(urllib.request.Request(words[1], data=data, headers=headers), timeout=20) as answer:
            return json.load(answer)


@pytest.fixture
def reader() -> Iterator[Reader]:
    folder = scratch_folder()
    hub = Hub(homes.make(folder / "home"))
    # As the page says, but for the half a minute.
    hub.run("up", MEMORYHUB_DEBOUNCE_SECONDS="1")
    try:
        hub.wait_for(RUNNING)
        yield Reader(hub)
    finally:
        hub.end()
        embedded_postgres.stop(hub.home)
        shutil.rmtree(folder)


def as_shown(memory: str) -> str:
    """With the day of the page."""
    return DAY.sub("2026-11-03:", memory)


def test_every_example_works_and_prints_what_the_page_shows(reader: Reader) -> None:
    makes_key, installs, posts, asks, states, searches = [block for block in BLOCKS if block != SHOWN]
    assert reader.does(makes_key)
    assert reader.talks("My cat is called Minka.", "Who is Minka?").endswith("user: My cat is called Minka.\nYou:")
    # Another talk knows it, too.
    assert "My cat is called Minka" in reader.talks("What is my cat called?")
    assert AGENT in installs
    assert [turn["number"] for turn in reader.does(posts)["turns"]] == [1, 2]
    # At once, before anything was extracted.
    assert "I moved to Leiden" in reader.does(asks)["memory"]
    wait_until(lambda: "Facts:" in reader.does(asks)["memory"])
    assert as_shown(reader.does(asks)["memory"]) == SHOWN
    messages = reader.does(asks.replace('"max_tokens": 500', f'"session_id": "s1", {INCLUDE}'))["messages"]
    # Ready for a chat completion: the memory comes first.
    assert [message["role"] for message in messages] == ["system", "user", "assistant"]
    assert messages[1]["content"] in posts
    fact = reader.does(states)
    assert (fact["content"], fact["status"]) == ("Allergic to peanuts", "active")
    found = reader.does(searches)["results"]
    assert {one["kind"] for one in found} <= {"turn", "fact"}
    assert any("Leiden" in json.dumps(one) for one in found)


def test_the_page_shows_the_agent_and_what_both_ways_make_of_the_example() -> None:
    assert len(BLOCKS) == 7
    [(_, agent)] = [fenced for fenced in FENCED if fenced[0]]
    assert f"{agent}\n" == (settings.BASE_DIR / AGENT).read_text(encoding="utf-8")
    assert len(FACT.findall(SHOWN)) == BY_MODEL.count("\n") == 2
