"""For the conversations in Python: where the hub is, and what the person says. It runs in the client's environment."""

import json
import os
import subprocess
import time
from collections.abc import Iterator

URL, KEY = os.environ["SUITE_URL"], os.environ["SUITE_KEY"]
MODEL = "gpt-4o"
CONVERSATIONS: list[list[str]] = json.loads(os.environ["SUITE_SAYS"])
PAUSE_SECONDS = float(os.environ["SUITE_PAUSE"])
TELLS = os.environ["SUITE_MODE"] == "said"


def headers(session: object, said: str = "last") -> dict[str, str]:
    """Of requests of one conversation; `said="none"`: of those beside it. Without the mode only the person is named."""
    named = {"X-Memory-User": os.environ["SUITE_USER"]}
    if not TELLS:
        return named
    return {**named, "X-Memory-Session": f"{os.environ['SUITE_USER']}-{session}", "X-Memory-Said": said}


def texts(conversation: list[str]) -> Iterator[str]:
    """One after the other, as a person takes time to type."""
    for text in conversation:
        time.sleep(PAUSE_SECONDS)
        yield text


def run(*command: str, typed: str = "") -> None:
    """A command of a client; what it prints is shown if it fails."""
    done = subprocess.run(command, input=typed, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command[0]}: {done.stdout[-300:]}{done.stderr[-300:]}")
