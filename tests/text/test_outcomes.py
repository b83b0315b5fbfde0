"""How a task came out, by exit codes of test runs and by what the person says next: tables."""

from typing import Any

from memories.text import outcomes
from memories.text.outcomes import APPLICATION, FAILED, PERSON, SUCCEEDED, TESTS, Outcome, Step
from tests.each import each

PASSED, BROKEN = (SUCCEEDED, TESTS), (FAILED, TESTS)
# Command, exit code → what it says.
RUNS: tuple[tuple[str, int, tuple[str, str] | None], ...] = (
    ("pytest -q", 0, PASSED),
    ("pytest -q", 1, BROKEN),
    ("cd app && .venv/bin/python3.12 -m pytest tests -x", 2, BROKEN),
    ("DEBUG=1 CI=true uv run pytest -n 4", 0, PASSED),
    ("timeout 60 npm test", 124, BROKEN),
    ("npm run test:unit -- --watch=false", 0, PASSED),
    ("npx jest src", 1, BROKEN),
    ("go test ./...", 0, PASSED),
    ("cargo +nightly test --all", 101, BROKEN),
    ("make -j4 -C lib test", 2, BROKEN),
    ("./gradlew :app:test", 0, PASSED),
    ("mvn -q clean verify", 1, BROKEN),
    ("python manage.py test shop", 0, PASSED),
    ("set -o pipefail; pytest | tail -5", 1, BROKEN),
    ("pytest 2>&1", 1, BROKEN),
    ("ruff check .\npytest", 1, BROKEN),
    ("pytest && git push", 0, PASSED),
    # It may have been the push.
    ("pytest && git push", 1, None),
    # The exit code of another command.
    ("pytest | tail -5", 0, None),
    ("pytest || true", 0, None),
    ("pytest; echo done", 0, None),
    ("test -f x || pytest", 0, None),
    # No test run.
    ("pip install pytest", 0, None),
    ("npm install test", 0, None),
    ("npm run build", 1, None),
    ("which pytest", 0, None),
    ("pytest --version", 0, None),
    ("pytest --collect-only -q", 0, None),
    ("make -n test", 0, None),
    ("git commit -m 'make test pass'", 0, None),
    ("echo pytest", 0, None),
    ("cat tests/test_a.py", 0, None),
    ("echo 'no end", 0, None),
    ("", 0, None),
)
# What the person says next, in order → what it says.
REPLIES: tuple[tuple[list[str], str | None], ...] = (
    (["Thanks!"], SUCCEEDED),
    (["Great work. Now the next page."], SUCCEEDED),
    (["Perfect, that works now."], SUCCEEDED),
    (["谢谢，可以了。"], SUCCEEDED),
    (["太好了！"], SUCCEEDED),
    (["完全正确"], SUCCEEDED),
    (["No, that's wrong."], FAILED),
    (["It still doesn't work."], FAILED),
    (["Thanks, but it still fails."], FAILED),
    (["Revert that, please."], FAILED),
    (["还是不行"], FAILED),
    (["不对，你理解错了"], FAILED),
    (["谢谢，但是还是报错"], FAILED),
    (["And what about the blue one?", "Thank you."], SUCCEEDED),
    # The first word about it counts: what follows is about what was done since.
    (["That's wrong.", "Thanks!"], FAILED),
    (["Add a button.", "Make it blue.", "Put it left.", "Thanks."], None),
    (["Thanks in advance: add a button."], None),
    (["Does it work on Windows?"], None),
    (["If it works, tell Bob."], None),
    (["请加一个按钮"], None),
    (["可以了吗？"], None),
    ([], None),
)
EXIT_CODES: tuple[tuple[str, int | None], ...] = (
    ("Exit code 1\nFAILED tests/test_a.py", 1),
    ("Exit code: 0\nWall time: 1 s\nOutput:\nok", 0),
    ("Process exited with code 137\nkilled", 137),
    ('{"output": "ok", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}', 0),
    ("ok\nCommand failed with exit code 2", 2),
    ("<returncode>0</returncode>\n<output>ok</output>", 0),
    ("x" * 10_000 + "\nExit code: 3", 3),
    ("The docs say that exit code 1 means failure.", None),
    ("12 passed in 0.3s", None),
    ("Exit code 99999999999", None),
)
COMMANDS: tuple[tuple[Any, str], ...] = (
    ({"command": "pytest"}, "pytest"),
    ({"cmd": ["bash", "-lc", "cd x && pytest"]}, "cd x && pytest"),
    ({"command": ["pytest", "a b"]}, "pytest 'a b'"),
    ('{"command": "go test ./..."}', "go test ./..."),
    ("cargo test", "cargo test"),
    ({"path": "a.py"}, ""),
    ([1, 2], ""),
    (None, ""),
)
APP, TEST, SAID = Outcome(SUCCEEDED, APPLICATION), Outcome(FAILED, TESTS), Outcome(SUCCEEDED, PERSON)


@each("command, code, expected", RUNS)
def test_the_exit_code_of_a_test_run(command: str, code: int, expected: tuple[str, str] | None) -> None:
    found = outcomes.of_tests([Step(True, "bash", arguments={"command": command}, exit_code=code)])
    assert (found and found[:2]) == expected


@each("texts, expected", REPLIES)
def test_what_the_person_says_next(texts: list[str], expected: str | None) -> None:
    assert outcomes.of_replies(texts) == (Outcome(expected, PERSON) if expected else None)


@each("text, expected", EXIT_CODES)
def test_exit_codes_in_texts(text: str, expected: int | None) -> None:
    assert outcomes.exit_code_in(text) == expected


@each("arguments, expected", COMMANDS)
def test_the_command_of_a_call(arguments: Any, expected: str) -> None:
    assert outcomes.command_of("bash", arguments) == expected


def test_the_last_test_run_counts_and_results_belong_to_their_calls() -> None:
    call, other = Step(True, "bash", "c1", {"command": "pytest"}), Step(True, "bash", "c2", {"command": "ls"})
    failed, fixed = Step(False, "", "c1", exit_code=1), Step(False, "", "c1", exit_code=0)
    assert outcomes.of_tests([call, other, failed, Step(False, "", "c2", exit_code=0)]) == Outcome(
        FAILED, TESTS, "pytest: exit code 1"
    )
    assert outcomes.of_tests([call, failed, call, fixed]) == Outcome(SUCCEEDED, TESTS, "pytest: exit code 0")
    # Without ids a result answers the call before it.
    unnamed = [Step(True, "bash", arguments="pytest"), Step(False, exit_code=1), Step(True, "bash", arguments="ls")]
    assert outcomes.of_tests([*unnamed, Step(False, exit_code=0)]) == Outcome(FAILED, TESTS, "pytest: exit code 1")
    assert outcomes.of_tests([Step(True, "run_tests", exit_code=0)]) == Outcome(
        SUCCEEDED, TESTS, "run_tests: exit code 0"
    )
    assert outcomes.of_tests([Step(False, exit_code=1), Step(True, "read", arguments={"path": "a"})]) is None


@each(
    "known, found, expected",
    (
        (Outcome(), SAID, SAID),
        (SAID, TEST, TEST),
        (TEST, APP, APP),
        (APP, TEST, APP),
        (TEST, SAID, TEST),
        (APP, SAID, APP),
        # The same one may change its mind.
        (TEST, Outcome(SUCCEEDED, TESTS), Outcome(SUCCEEDED, TESTS)),
        (APP, Outcome(FAILED, APPLICATION), Outcome(FAILED, APPLICATION)),
        (SAID, None, SAID),
    ),
)
def test_a_stronger_source_replaces_a_weaker_one_and_never_the_other_way_round(
    known: Outcome, found: Outcome | None, expected: Outcome
) -> None:
    assert outcomes.stronger(known, found) == expected
