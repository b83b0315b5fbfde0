"""The conflict rule: a table of cases, each with what every policy makes of it (rules.md, 5.13). Nothing is stored."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from memories.facts import policies
from memories.facts.candidate import Candidate
from memories.facts.decision import Action, Decision, decide
from memories.facts.existing import Comparison
from memories.facts.policies import Policy, Refused
from memories.facts.refusals import RefusalOutcome, outcome
from memories.facts.timeline import Interval
from memories.models import ActorKind, Fact, FactRefusal, Status
from memories.models.memories.refusals import refusal_key_of_text
from memories.text.injection.detection import INSTRUCTIONS
from memories.trust import Source, Trust
from tests.each import each
from tests.factories import NOW

POLICIES = {
    "key": policies.KEY,
    "operator": policies.OPERATOR,
    "document": policies.DOCUMENT,
    "reflection": policies.REFLECTION,
    "upkeep": policies.UPKEEP,
    "extraction": policies.EXTRACTION,
}


def fact(value: str = "Leiden", **over: Any) -> Fact:
    given = {"content": f"Lives in {value}", "category": "identity", "key": "city", "value": value, "trust": "user"}
    return Fact(**given | {"status": Status.ACTIVE, "stated_confidence": 0.8, "content_hash": b"", **over})


def stated(policy: str, **over: Any) -> Candidate:
    """As this road states it: an operator's word binds, a reflection is a proposal."""
    candidate = Candidate(
        "Lives in Delft", "identity", 0.9, Trust.USER, Source.EXPLICIT, "api", key="city", value="Delft"
    )
    owns: dict[str, dict[str, Any]] = {
        "operator": {"trust": Trust.OPERATOR, "binding": True},
        "reflection": {"trust": Trust.ASSISTANT, "proposed_as": "habit", "flags": ["reflected_habit"]},
        "upkeep": {"merges": [MERGED]},
    }
    own = owns.get(policy, {})
    flags = [*own.pop("flags", ()), *over.pop("flags", ())]
    return replace(candidate, **{**over, **own}, flags=flags)


OLD, SAME, MERGED, SURE, WORD = fact(), fact("Delft"), fact("Utrecht"), fact(stated_confidence=1.0), fact(binding=True)
KEPT = fact("Delft", binding=True)
ASSISTANT, TOOL = Trust.ASSISTANT, Trust.TOOL
HELD, DROPPED = RefusalOutcome.HOLD, RefusalOutcome.DROP
LATE = Interval(before=None, before_at=None, after=OLD, after_at=NOW)
NEAR = fact("Gouda")
# A case, what it is (of the candidate, of what it meets), and what becomes of it: with a key, by an operator, in a
# document, by a reflection, by upkeep, by extraction. Capitals are an Action; a reason for review says that it waits.
CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("nothing is known", {}, {}, "STORE STORE STORE habit STORE STORE"),
    ("the same text", {}, {"same_text": [SAME]}, "REPORT_DUPLICATE REPORT_DUPLICATE SKIP SKIP SKIP SKIP"),
    ("its external id", {}, {"same_id": [OLD]}, "REPORT_DUPLICATE REPORT_DUPLICATE SKIP SKIP SKIP SKIP"),
    ("the same value", {}, {"restated": SAME}, "REINFORCE STORE REINFORCE habit REINFORCE REINFORCE"),
    ("another value", {}, {"rivals": [OLD]}, "STORE STORE STORE habit STORE STORE"),
    ("less sure", {"confidence": 0.7}, {"rivals": [OLD]}, "less_sure STORE STORE habit STORE less_sure"),
    ("as sure", {"confidence": 0.8}, {"rivals": [OLD]}, "STORE STORE STORE habit STORE STORE"),
    ("certain", {"confidence": 0.95}, {"rivals": [SURE]}, "STORE STORE STORE habit STORE STORE"),
    ("a decision", {"is_decisive": True}, {"rivals": [SURE]}, "STORE STORE STORE habit STORE STORE"),
    ("an operator's word", {}, {"rivals": [WORD]}, "operators_word STORE STORE habit STORE operators_word"),
    ("a word, repeated", {}, {"same": [KEPT], "restated": KEPT}, "REINFORCE STORE REINFORCE habit REINFORCE SKIP"),
    ("an assistant's", {"trust": ASSISTANT}, {}, "assistant_trust STORE assistant_trust habit STORE assistant_trust"),
    (
        "an assistant's, known",
        {"trust": ASSISTANT},
        {"same": [SAME], "restated": SAME},
        "assistant_trust STORE assistant_trust habit REINFORCE SKIP",
    ),
    ("against more trust", {"trust": TOOL}, {"rivals": [OLD]}, "outranked STORE tool_trust habit STORE outranked"),
    ("beside more trust", {"trust": TOOL, "beside": OLD}, {}, "tool_trust STORE outranked habit STORE tool_trust"),
    ("an import against", {"is_import": True}, {"rivals": [OLD]}, "imported STORE STORE habit STORE imported"),
    ("an import beside", {"is_import": True, "beside": OLD}, {}, "STORE STORE imported habit STORE STORE"),
    ("flagged", {"flags": [INSTRUCTIONS]}, {}, "instructions STORE instructions SKIP SKIP instructions"),
    (
        "flagged, less sure",
        {"flags": [INSTRUCTIONS], "confidence": 0.7},
        {"rivals": [OLD]},
        "instructions STORE instructions SKIP SKIP instructions",
    ),
    (
        "refused, waits",
        {},
        {"refusal": HELD},
        "refused_before refused_before refused_before habit refused_before refused_before",
    ),
    ("refused for good", {}, {"refusal": DROPPED}, "REPORT_REFUSED SKIP SKIP SKIP SKIP SKIP"),
    ("near what was refused", {}, {"near_refused": NEAR}, "near_refused STORE STORE habit STORE near_refused"),
    ("said before", {}, {"rivals": [OLD], "interval": LATE}, "CLOSE CLOSE CLOSE habit CLOSE CLOSE"),
    (
        "before, less sure",
        {"confidence": 0.1},
        {"rivals": [OLD], "interval": LATE},
        "CLOSE CLOSE CLOSE habit CLOSE CLOSE",
    ),
    (
        "before more trust",
        {"trust": TOOL, "flags": [INSTRUCTIONS]},
        {"rivals": [OLD], "interval": LATE},
        "outranked CLOSE instructions SKIP SKIP outranked",
    ),
    ("more exact", {}, {"refines": [OLD]}, "REFINE REFINE REFINE habit REFINE REFINE"),
    ("more exact than a word", {}, {"refines": [WORD]}, "operators_word REFINE REFINE habit REFINE operators_word"),
    ("a suggestion", {}, {"suggestion": OLD}, "STORE STORE STORE habit STORE STORE"),
    ("one in a conflict", {}, {"suggestion": OLD, "is_contested": True}, "HOLD HOLD HOLD habit HOLD HOLD"),
]


def decided(policy: Policy, candidate: Candidate, compared: Comparison, *, trusts_assistant: bool = False) -> Decision:
    return decide(candidate, compared, policy, trusts_assistant=trusts_assistant)


@each("case", CASES)
def test_each_policy_decides_as_the_table_says(case: Any) -> None:
    _, said, met, expected = case
    found = []
    for name, policy in POLICIES.items():
        decision = decided(policy, stated(name, **said), Comparison(**met))
        found.append(decision.reason or decision.action.name)
    assert " ".join(found) == expected


def test_it_takes_the_place_of_what_is_not_protected_and_of_its_own_agent() -> None:
    rivals = [OLD, fact(pinned=True), fact(agent_id="sales")]
    assert decided(policies.OPERATOR, stated("operator"), Comparison(rivals=rivals)).supersedes == [OLD]
    assert decided(policies.UPKEEP, stated("upkeep"), Comparison()).supersedes == [MERGED]


def test_what_is_heard_stands_beside_the_persons_own_and_is_related_to_what_it_waits_for() -> None:
    persons, heard = fact(agent_id=""), replace(stated("extraction"), agent_id="sales")
    kept = decided(policies.EXTRACTION, heard, Comparison(rivals=[persons], namesakes=[NEAR]))
    assert (kept.supersedes, kept.contradicts, kept.related) == ([], [persons], [NEAR])
    held = decided(policies.EXTRACTION, replace(heard, confidence=0.1), Comparison(rivals=[persons], suggestion=SAME))
    assert (held.reason, held.target, held.contradicts, held.joins) == ("less_sure", persons, [persons], SAME)
    assert decided(policies.KEY, replace(stated("key"), confidence=0.1), Comparison(rivals=[OLD])).contradicts == []


def test_a_correction_waits_beside_what_it_corrects() -> None:
    candidate = replace(stated("key"), proposed_as="proposed", beside=OLD)
    decision = decided(policies.KEY, candidate, Comparison(rivals=[fact("Utrecht")]))
    assert (decision.action, decision.reason, decision.target) == (Action.HOLD, "proposed", OLD)


def test_a_tenant_may_trust_its_assistant_but_no_import() -> None:
    for is_import, action in ((False, Action.STORE), (True, Action.HOLD)):
        candidate = replace(stated("key"), trust=Trust.ASSISTANT, is_import=is_import)
        assert decided(policies.KEY, candidate, Comparison(), trusts_assistant=True).action == action


@each(
    ("rule", "by", "trust", "is_import", "expected"),
    [
        (Refused.BY_WHOM, "operator", Trust.USER, False, "HOLD"),
        (Refused.BY_WHOM, "operator", Trust.ASSISTANT, False, "DROP"),
        (Refused.BY_WHOM, "other key", Trust.USER, False, "LIFT"),
        (Refused.BY_WHOM, "other key", Trust.USER, True, "HOLD"),
        (Refused.BY_WHOM, "other key", Trust.ASSISTANT, False, "HOLD"),
        (Refused.BY_WHOM, "this key", Trust.ASSISTANT, False, "LIFT"),
        (Refused.BY_WHOM_OF_TEXT, "this key", Trust.TOOL, True, "HOLD"),
        (Refused.USERS_WAITS, "this key", Trust.USER, False, "HOLD"),
        (Refused.USERS_WAITS, "this key", Trust.ASSISTANT, False, "DROP"),
        (Refused.ENDS, "operator", Trust.OPERATOR, False, "LIFT"),
        (Refused.DROP, "this key", Trust.USER, False, "DROP"),
    ],
)
def test_what_follows_from_a_refusal(rule: Refused, by: str, trust: Trust, is_import: bool, expected: str) -> None:
    kind = ActorKind.OPERATOR if by == "operator" else ActorKind.KEY
    row = FactRefusal(actor_kind=kind, actor_id=by)
    found = outcome([row], rule=rule, trust=trust, key_id="this key", is_import=is_import)
    assert found == RefusalOutcome[expected]
    assert outcome([], rule=rule, trust=trust) == RefusalOutcome.ALLOW


def test_of_several_refusals_the_gravest_counts_and_what_is_ended_is_named() -> None:
    rows = [FactRefusal(actor_kind=kind) for kind in (ActorKind.KEY, ActorKind.OPERATOR)]
    assert outcome(rows, rule=Refused.BY_WHOM, trust=Trust.USER) == RefusalOutcome.HOLD
    key = refusal_key_of_text("Lives in Delft")
    lifted = Comparison(refusal=RefusalOutcome.LIFT, refused_keys=[key])
    assert decided(policies.KEY, stated("key"), lifted).ends_refusals == [key]
    # What was said before ends nothing.
    assert decided(policies.KEY, stated("key"), replace(lifted, interval=LATE)).ends_refusals == ()


def test_nothing_is_said_after_it_arrives() -> None:
    late = replace(stated("key"), stated_at=[NOW + timedelta(days=1), NOW - timedelta(days=1)])
    assert late.moments(NOW) == [NOW - timedelta(days=1), NOW]
    assert stated("key").moments(NOW) == [NOW]
