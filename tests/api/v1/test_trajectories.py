"""/trajectories: storing, adding steps, outcomes, reading, deleting."""

import uuid
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from memories.capture import trajectories
from memories.curation.access.keys import Binding
from memories.models import AuditEvent, EndUser, Fact, Trajectory, TrajectoryStep
from memories.models.conversations.trajectories import LONGEST_ARGUMENTS, LONGEST_CONTENT
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.database import at_once

SECRET = "sk-proj-4f9aB2cD8eF1gH3iJ5kL7mN9oP0qR2sT4uV6wX8yZ1"


def call(command: str, call_id: str = "c1", **given: Any) -> dict[str, Any]:
    return {"kind": "tool_call", "tool": "bash", "call_id": call_id, "arguments": {"command": command}, **given}


def result(call_id: str = "c1", **given: Any) -> dict[str, Any]:
    return {"kind": "tool_result", "call_id": call_id, "content": "ok", **given}


def post(hub: Hub, *steps: dict[str, Any], **given: Any) -> dict[str, Any]:
    answer = hub.client.post("/trajectories", {"user_id": "u1", "task": "Fix the build", "steps": list(steps), **given})
    assert answer.status_code == 202, answer.content
    body: dict[str, Any] = answer.json()
    return body


def add(hub: Hub, pk: str, *steps: dict[str, Any], **given: Any) -> Any:
    return hub.client.post(f"/trajectories/{pk}/steps", {"steps": list(steps), **given})


def outcome(hub: Hub, pk: str) -> tuple[str, str | None]:
    found = hub.client.call("GET", f"/trajectories/{pk}").json()["outcome"]
    return found["result"], found["source"]


def test_a_trajectory_is_stored_and_read(hub: Hub) -> None:
    made = post(
        hub,
        {"kind": "message", "content": "I look at the log."},
        call("cat build.log", at="2026-11-03T09:00:00Z"),
        result(exit_code=0),
        agent_id="Coder",
        session_id="s1",
        family="build",
        skills=["fix a build", " fix  a build "],
        outcome={"result": "succeeded", "reason": "It builds."},
        started_at="2026-11-03T08:59:00Z",
    )
    shown = made["trajectory"]
    assert {name: made[name] for name in ("duplicate", "accepted", "duplicates", "redactions", "cut")} == {
        "duplicate": False, "accepted": 3, "duplicates": 0, "redactions": 0, "cut": 0,
    }  # fmt: skip
    assert (shown["agent_id"], shown["session_id"], shown["family"]) == ("coder", "s1", "build")
    assert shown["outcome"] == {"result": "succeeded", "source": "application", "reason": "It builds."}
    assert (shown["skills"], shown["step_count"], shown["trust"]) == (["fix a build"], 3, "user")
    listed = hub.client.call("GET", "/trajectories", query={"user_id": "u1"}).json()["results"]
    assert listed == [shown] == [hub.client.call("GET", f"/trajectories/{shown['id']}").json()]
    steps = hub.client.call("GET", f"/trajectories/{shown['id']}/steps").json()["results"]
    assert [(one["position"], one["kind"]) for one in steps] == [(1, "message"), (2, "tool_call"), (3, "tool_result")]
    assert steps[1]["arguments"] == {"command": "cat build.log"}
    # Nothing of it is a statement of the person.
    assert not Fact.objects.exists()
    for query in ({"agent_id": "other"}, {"family": "other"}, {"outcome": "failed"}, {"session_id": "s2"}):
        assert not hub.client.call("GET", "/trajectories", query={"user_id": "u1", **query}).json()["results"]


@pytest.mark.django_db(transaction=True)
def test_two_at_once_store_it_once_and_number_their_steps() -> None:
    tenant = factories.tenant()

    def store(index: int) -> trajectories.TrajectoryReceipt:
        posted = trajectories.PostedTrajectory("Fix it", external_id="t1")
        return trajectories.store_trajectory(tenant=tenant, user_id="u1", posted=posted, now=factories.NOW)

    made = at_once(3, store)
    assert sorted(one.duplicate for one in made if isinstance(one, trajectories.TrajectoryReceipt)) == [
        False,
        True,
        True,
    ]
    row = Trajectory.objects.get()

    def add_one(index: int) -> trajectories.TrajectoryReceipt:
        steps = [trajectories.PostedStep("note", content=f"{index}"), trajectories.PostedStep("note", call_id="c")]
        return trajectories.append_steps(tenant=tenant, trajectory_id=row.pk, posted=steps, now=factories.NOW)

    added = at_once(3, add_one)
    assert sorted(one.accepted for one in added if isinstance(one, trajectories.TrajectoryReceipt)) == [1, 1, 2]
    assert list(row.steps.order_by("position").values_list("position", flat=True)) == [1, 2, 3, 4]


def test_arguments_that_are_no_json_for_others_stay_a_text(hub: Hub) -> None:
    odd = [
        '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": %s}' % ("9" * 4000), "[" * 70 + "]" * 70,
        "[" * 450 + "]" * 450, '{"a":' * 450 + "1" + "}" * 450, "{" * 50_000, "[1, 2]",
    ]  # fmt: skip
    good = ['{"a": 12.5, "b": -3}', '{"a": {"b": [9007199254740993]}}']
    made = post(hub, *(call("", f"c{at}", arguments=text) for at, text in enumerate([*odd, *good])))
    steps = hub.client.call("GET", f"/trajectories/{made['trajectory']['id']}/steps").json()["results"]
    shown = [one["arguments"] for one in steps]
    assert shown[: len(odd)] == [text[:LONGEST_ARGUMENTS] for text in odd]
    assert shown[len(odd) :] == [{"a": 12.5, "b": -3}, {"a": {"b": [9007199254740993]}}]


def test_what_is_sent_again_is_stored_once(hub: Hub) -> None:
    made = post(hub, call("ls"), result(), external_id="t1")
    again = post(hub, call("ls"), result(), external_id="t1")
    assert (again["duplicate"], again["trajectory"]["id"]) == (True, made["trajectory"]["id"])
    added = add(hub, made["trajectory"]["id"], call("ls"), result(), call("pwd", "c2")).json()
    assert (added["accepted"], added["duplicates"], added["trajectory"]["step_count"]) == (1, 2, 3)
    # Another person's is another one.
    assert not post(hub, user_id="u2", external_id="t1")["duplicate"]
    assert Trajectory.objects.count() == 2


def test_secrets_are_cut_out_everywhere_and_long_texts_are_cut(hub: Hub) -> None:
    made = post(
        hub,
        call(f"curl -H 'Authorization: Bearer {SECRET}' x", arguments={"key": SECRET, "deep": [{"token": SECRET}]}),
        result(content=f"the key is {SECRET}. \u200b{'x' * LONGEST_CONTENT}"),
        # Arguments as a model's text: the names in it count, too.
        call("x", "c2", arguments='{"password": "hunter2secret9"}'),
        call("x", "c3", arguments={"text": "y" * LONGEST_ARGUMENTS}),
        task=f"Use {SECRET} for this",
        outcome={"result": "failed", "reason": f"{SECRET} was refused"},
        skills=[f"use {SECRET}"[:100]],
        family="deploy",
    )
    assert (made["cut"], made["redactions"] >= 7) == (2, True)
    row, steps = Trajectory.objects.get(), list(TrajectoryStep.objects.all())
    everything = [
        row.task,
        row.outcome_reason,
        str(row.skills_named),
        *(f"{one.arguments}{one.content}" for one in steps),
    ]
    assert not [text for text in everything if SECRET in text or "hunter2secret9" in text or "\u200b" in text]
    assert len(steps[1].content) == LONGEST_CONTENT
    assert isinstance(steps[3].arguments, str)
    assert (len(steps[3].arguments), steps[3].cut > 0) == (LONGEST_ARGUMENTS, True)


def test_the_last_test_run_says_how_it_came_out_unless_the_application_does(hub: Hub) -> None:
    made = post(hub, call("pytest"), result(content="Exit code 1\n1 failed"))["trajectory"]
    assert (made["outcome"]["result"], made["outcome"]["source"]) == ("failed", "tests")
    assert made["outcome"]["reason"] == "pytest: exit code 1"
    # The call came before, and its result later.
    add(hub, made["id"], call("pytest -x", "c2"))
    assert outcome(hub, made["id"]) == ("failed", "tests")
    add(hub, made["id"], result("c2", exit_code=0))
    assert outcome(hub, made["id"]) == ("succeeded", "tests")
    changed = hub.client.call("PATCH", f"/trajectories/{made['id']}", {"outcome": "failed"})
    assert (changed.status_code, changed.json()["outcome"]["source"]) == (200, "application")
    add(hub, made["id"], call("pytest", "c3", exit_code=0))
    assert outcome(hub, made["id"]) == ("failed", "application")
    # What the application passes on of the person is weaker, too.
    hub.client.call("PATCH", f"/trajectories/{made['id']}", {"outcome": {"result": "succeeded", "source": "person"}})
    assert outcome(hub, made["id"]) == ("failed", "application")


def said(hub: Hub, text: str, session_id: str = "s1") -> None:
    message = {"role": "user", "content": text}
    assert (
        hub.client.post("/turns", {"user_id": "u1", "session_id": session_id, "messages": [message]}).status_code == 202
    )


def test_the_persons_next_words_say_how_it_came_out(
    hub: Hub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    said(hub, "Thanks for yesterday!")
    made, elsewhere = post(hub, call("ls"), session_id="s1"), post(hub, call("ls"), session_id="s2")
    assert outcome(hub, made["trajectory"]["id"]) == ("unknown", None)
    with django_capture_on_commit_callbacks(execute=True):
        said(hub, "And what about the blue one?")
    assert outcome(hub, made["trajectory"]["id"]) == ("unknown", None)
    with django_capture_on_commit_callbacks(execute=True):
        said(hub, "还是不行")
    assert outcome(hub, made["trajectory"]["id"]) == ("failed", "person")
    # A stronger one says otherwise, and then thanks change nothing.
    add(hub, made["trajectory"]["id"], call("make test", "c2", exit_code=0))
    assert outcome(hub, made["trajectory"]["id"]) == ("succeeded", "tests")
    with django_capture_on_commit_callbacks(execute=True):
        said(hub, "That's wrong.")
    assert outcome(hub, made["trajectory"]["id"]) == ("succeeded", "tests")
    assert outcome(hub, elsewhere["trajectory"]["id"]) == ("unknown", None)


def test_words_after_the_next_task_are_not_about_the_one_before(
    hub: Hub, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    first = post(hub, call("ls"), session_id="s1")["trajectory"]["id"]
    second = post(hub, call("ls"), session_id="s1")["trajectory"]["id"]
    with django_capture_on_commit_callbacks(execute=True):
        said(hub, "Thank you!")
    assert (outcome(hub, first), outcome(hub, second)) == (("unknown", None), ("succeeded", "person"))


def test_limits(hub: Hub) -> None:
    hub.tenant.numbers = {"trajectories": 10, "trajectory_steps": 10}
    hub.tenant.save()
    made = post(hub, *(call("ls", f"c{at}") for at in range(9)))["trajectory"]["id"]
    refused = add(hub, made, call("ls", "d1"), call("ls", "d2"))
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_steps")
    assert add(hub, made, call("ls", "d1")).status_code == 202
    for _ in range(9):
        post(hub)
    refused = hub.client.post("/trajectories", {"user_id": "u1", "task": "One more"})
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_trajectories")
    large = hub.client.post("/trajectories", {"user_id": "u2", "task": "x", "steps": [result(content="x" * 1_100_000)]})
    assert (large.status_code, large.json()["errors"][0]["pointer"]) == (413, "/steps/0")
    assert not EndUser.objects.filter(external_id="u2").exists()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"task": " "}, "/task"),
        ({"task": "x", "outcome": "great"}, "/outcome"),
        ({"task": "x", "outcome": {"result": "failed", "source": "me"}}, "/outcome/source"),
        ({"task": "x", "steps": [{"kind": "tool_call"}]}, "/steps/0/tool"),
        ({"task": "x", "steps": [{"kind": "note", "arguments": 3}]}, "/steps/0/arguments"),
        ({"task": "x", "steps": [{"kind": "note", "exit_code": 2**40}]}, "/steps/0/exit_code"),
        ({"task": "x", "step": []}, "/step"),
    ],
)
def test_bad_input_is_told_with_its_place(hub: Hub, body: dict[str, Any], pointer: str) -> None:
    refused = hub.client.post("/trajectories", {"user_id": "u1", **body})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, pointer)
    assert not Trajectory.objects.exists()


def test_nothing_is_stored_where_capture_is_off(hub: Hub) -> None:
    made = post(hub)["trajectory"]["id"]
    EndUser.objects.update(capture=False)
    assert post(hub)["trajectory"] is None
    assert add(hub, made, call("ls")).json()["trajectory"] is None
    assert hub.client.call("PATCH", f"/trajectories/{made}", {"outcome": "failed"}).json()["outcome"]["source"] is None
    assert (Trajectory.objects.count(), TrajectoryStep.objects.count()) == (1, 0)


def test_deleting_is_for_good_and_for_keys_that_may(hub: Hub) -> None:
    kept, gone = post(hub, call("ls"))["trajectory"]["id"], post(hub, call("ls"))["trajectory"]["id"]
    of_tools = hub_of(hub.tenant, binding=Binding(writes_as="agent"))
    assert of_tools.client.call("DELETE", f"/trajectories/{gone}").status_code == 409
    assert hub.client.call("DELETE", f"/trajectories/{gone}").status_code == 204
    assert hub.client.call("GET", f"/trajectories/{gone}").status_code == 404
    assert [str(one) for one in Trajectory.objects.values_list("pk", flat=True)] == [kept]
    assert TrajectoryStep.objects.count() == 1
    event = AuditEvent.objects.get(object_type="Trajectory")
    assert (event.verb, event.object_id, event.counts) == ("delete", uuid.UUID(gone), {"steps": 1})


def test_a_key_for_an_agent_sees_its_own(hub: Hub) -> None:
    own = post(hub, agent_id="coder")["trajectory"]["id"]
    other = post(hub, agent_id="baker")["trajectory"]["id"]
    coder = hub_of(hub.tenant, binding=Binding(agent_id="coder"))
    listed = coder.client.call("GET", "/trajectories", query={"user_id": "u1"}).json()["results"]
    assert [one["id"] for one in listed] == [own]
    assert coder.client.call("GET", f"/trajectories/{other}").status_code == 404
    assert coder.client.call("GET", f"/trajectories/{own}/steps").status_code == 200


def test_a_session_takes_its_trajectories_along_and_a_turn_what_it_said(person: EndUser) -> None:
    hub = hub_of(person.tenant)
    session = factories.session(person, [("user", "My badge is 4417-XK"), ("assistant", "ok")], session_id="s1")
    text = "My badge is 4417-XK"
    beside = {"user_id": person.external_id, "session_id": "s1"}
    made = post(hub, call(f"echo {text!r}"), result(content=text), result("c2"), task=text, **beside)["trajectory"][
        "id"
    ]
    elsewhere = post(hub, result(content=text), user_id=person.external_id)["trajectory"]["id"]
    turn = session.turns.get(number=1)
    assert hub.client.call("DELETE", f"/turns/{turn.pk}").status_code == 204
    row = Trajectory.objects.get(pk=made)
    assert (row.task, [one.content for one in row.steps.all()]) == ("[redacted]", ["", "[redacted]", "ok"])
    assert text not in str(row.steps.get(position=1).arguments)
    assert hub.client.call("DELETE", f"/turns/{session.turns.get(number=2).pk}").status_code == 204
    assert hub.client.call("DELETE", f"/sessions/{session.pk}").status_code == 204
    assert [str(one) for one in Trajectory.objects.values_list("pk", flat=True)] == [elsewhere]
