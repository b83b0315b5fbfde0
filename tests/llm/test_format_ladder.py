"""json_schema, then json_object, then plain words; what an endpoint refused is not asked again."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from memories.conf import LLMConfig
from memories.exceptions import ModelAnswerInvalid, ModelMisconfigured, ModelUnavailable
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts.memory_update import MemoryUpdate
from tests.llm import endpoint as at
from tests.llm.conftest import ANSWER, MESSAGES
from tests.llm.endpoint import Endpoint, Handler

GOOD = at.says(json.dumps({"new_facts": []}))
REFUSED = at.fails(400, "response_format is not supported")
SCHEMA, OBJECT, PLAIN = "json_schema", "json_object", None


def ask(config: LLMConfig, **options: Any) -> Completion[MemoryUpdate]:
    return client.complete(messages=MESSAGES, answer=ANSWER, config=config, **options)


@pytest.mark.parametrize(
    ("responses", "formats"),
    [
        ([GOOD], [SCHEMA]),
        ([REFUSED, GOOD], [SCHEMA, OBJECT]),
        ([at.fails(422), GOOD], [SCHEMA, OBJECT]),
        ([REFUSED, REFUSED, GOOD], [SCHEMA, OBJECT, PLAIN]),
    ],
    ids=["schema", "object", "object after 422", "plain"],
)
def test_down_to_the_first_form_that_is_taken(
    responses: list[at.Response], formats: list[str | None], endpoint: Endpoint, config: LLMConfig
) -> None:
    endpoint.responds(*responses)
    assert ask(config).calls == len(formats)
    assert endpoint.formats() == formats


def test_the_accepted_form_is_remembered_per_model(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(REFUSED, GOOD)
    ask(config)
    assert ask(config).calls == 1
    assert ask(replace(config, model="other")).calls == 1
    assert endpoint.formats() == [SCHEMA, OBJECT, OBJECT, SCHEMA]


@pytest.mark.parametrize(
    "refusal",
    [
        at.fails(400),
        at.fails(422, "Unprocessable"),
        at.sends(b'{"error": {"code": "json_validate_failed", "message": "JSON does not match the schema"}}', 400),
        at.sends(b'{"error": {"message": "no", "input": "I write about response_format"}}', 400),
    ],
    ids=["unknown", "422", "one bad answer", "the prompt repeated"],
)
def test_only_a_refusal_that_names_the_form_is_remembered(
    refusal: at.Response, endpoint: Endpoint, config: LLMConfig
) -> None:
    endpoint.responds(refusal, GOOD, GOOD, REFUSED, GOOD, GOOD)
    assert [ask(config).calls for _ in range(4)] == [2, 1, 2, 1]
    assert endpoint.formats() == [SCHEMA, OBJECT, SCHEMA, SCHEMA, OBJECT, OBJECT]


def test_refused_in_every_form_it_was_not_the_form(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.fails(400, "unknown model"))
    for _ in range(2):
        with pytest.raises(ModelMisconfigured):
            ask(config)
    assert endpoint.formats() == [SCHEMA, OBJECT, PLAIN] * 2


def test_other_faults_do_not_step_down(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(at.fails(500), GOOD)
    with pytest.raises(ModelUnavailable):
        ask(config)
    ask(config)
    assert endpoint.formats() == [SCHEMA, SCHEMA]


def test_calls_are_bounded_and_announced(endpoint: Endpoint, config: LLMConfig) -> None:
    endpoint.responds(REFUSED, REFUSED, GOOD)
    announced: list[int] = []
    with pytest.raises(ModelAnswerInvalid):
        ask(config, max_calls=2, before_call=lambda: announced.append(len(endpoint.requests)))
    assert announced == [0, 1]
    # The refusals were learnt: the next attempt needs one call.
    assert ask(config, max_calls=1).calls == 1


def test_a_lost_lease_stops_before_the_call(endpoint: Endpoint, config: LLMConfig) -> None:
    def lost() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        ask(config, before_call=lost)
    assert endpoint.requests == []


def test_threads_share_a_client(endpoint: Endpoint, config: LLMConfig) -> None:
    all_here = threading.Barrier(8, timeout=5)

    def together(handler: Handler) -> None:
        all_here.wait()
        GOOD(handler)

    endpoint.responds(together)
    calls: list[int] = []
    threads = [threading.Thread(target=lambda: calls.append(ask(config).calls)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1] * 8


def test_the_most_tokens_of_an_answer_by_the_name_that_the_model_takes(endpoint: Endpoint, config: LLMConfig) -> None:
    newer = at.fails(400, "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.")
    endpoint.responds(newer, GOOD, GOOD, GOOD)
    assert ask(config, most_tokens=70).calls == 2
    assert ask(config, most_tokens=60).calls == 1
    ask(config)
    limits = [{name: one[name] for name in one if name.startswith("max_")} for one in endpoint.requests]
    assert limits == [{"max_tokens": 70}, {"max_completion_tokens": 70}, {"max_completion_tokens": 60}, {}]
