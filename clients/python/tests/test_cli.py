"""The commands of the package: which there are, and what they say when they cannot begin."""

import subprocess
import sys
from pathlib import Path

import pytest

from memoryhub_client import cli

SOURCES = str(Path(cli.__file__).parents[1])


def test_each_command_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(command.name in said and command.help in said for command in cli.COMMANDS)


def test_without_a_key_it_says_where_one_is_put(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMORYHUB_KEY", raising=False)
    assert cli.main(["mcp"]) == 1
    assert "MEMORYHUB_KEY" in capsys.readouterr().err


def test_without_its_extra_a_command_names_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "memoryhub_client.mcp_proxy", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert cli.main(["mcp", "--key", "mh_x"]) == 1
    assert "./clients/python[mcp]" in capsys.readouterr().err


@pytest.mark.parametrize(
    "called", [["hook", "--usr", "u1"], ["hook", "stop"], ["hoook"], [], ["hook", "--agent"]], ids=str
)
def test_called_wrongly_it_holds_no_agent_up(called: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(called)
    # A hook that ends with 2 stops the agent of Claude Code and Codex.
    assert ended.value.code == 1
    said = capsys.readouterr()
    assert "usage: memoryhub-client" in said.err
    assert said.out == ""


def test_the_program_loads_nothing_that_its_command_does_not_need() -> None:
    loaded = "import sys, memoryhub_client.cli; print('mcp' in sys.modules, 'memoryhub_client.cli' in sys.modules)"
    run = [sys.executable, "-c", loaded]
    said = subprocess.run(run, env={"PYTHONPATH": SOURCES}, capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]
