"""The adapters for agent frameworks that CI does not install: the tests and the page of each, in an environment of its
own with the pinned framework, against a fresh hub and a model that says what it is told to.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.clients_suite.environments import CACHE, bare, python

FRAMEWORKS: Mapping[str, Any] = json.loads(Path(__file__).with_name("frameworks.json").read_text("utf-8"))
PYTHON_CLIENT, JAVASCRIPT_CLIENT = Path("clients/python").absolute(), Path("clients/typescript").absolute()
# Besides the framework, what the Python client and its tests need.
TOOLS = ["httpx2==2.16.2", "pytest==9.2.0", "pytest-asyncio==1.5.0"]
SECONDS = 900
BEGIN, END = "<!-- frameworks: begin -->", "<!-- frameworks: end -->"
HEAD = "| framework | pinned | class | tests |\n| --- | --- | --- | --- |"
# Pytest's and node's.
CLOSING = re.compile(r"(\d+) passed|^.{0,3}pass (\d+)$", re.MULTILINE)


def tried(name: str) -> str:
    """How many tests held; what went wrong is in `.clients-suite/framework-NAME.log`."""
    says = FRAMEWORKS[name]
    try:
        done = _python(name, says) if says["language"] == "python" else _javascript(name, says)
    except (subprocess.SubprocessError, OSError) as error:
        return f"not run: {type(error).__name__}"
    (CACHE / f"framework-{name}.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    found = CLOSING.findall(done.stdout)
    if done.returncode or not found:
        return f"fails ({done.returncode})"
    return f"{''.join(found[-1])} hold"


def page(found: Mapping[str, str]) -> str:
    rows = [
        f"| [{says['title']}]({says['page']}) | {', '.join(f'`{one}`' for one in says['packages'] if one != 'zod')} "
        f"| {says['class']} | {found[name]} |"
        for name, says in FRAMEWORKS.items()
    ]
    return "\n".join([HEAD, *rows])


def _python(name: str, says: Mapping[str, Any]) -> "subprocess.CompletedProcess[str]":
    program = python(f"framework-{name}", [*says["packages"], *TOOLS])
    which = ["-k", f"test_{name} or docs/{name}.md", f"tests/test_{name}.py", "tests/test_pages.py"]
    command = [str(program), "-m", "pytest", "-p", "no:cacheprovider", "-W", "ignore", *which]
    return _call(command, PYTHON_CLIENT)


def _javascript(name: str, says: Mapping[str, Any]) -> "subprocess.CompletedProcess[str]":
    CACHE.mkdir(exist_ok=True)
    _call(["npm", "ci", "--silent", "--no-audit", "--no-fund"], JAVASCRIPT_CLIENT).check_returncode()
    return _call(["node", "tests/run.mjs", name, *says["packages"]], JAVASCRIPT_CLIENT)


def _call(command: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=folder, env=bare(), capture_output=True, text=True, timeout=SECONDS, check=False)
