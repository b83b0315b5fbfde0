"""Slips through whole extractions: turns are posted, the model answers, and the row of the fact tells what the hub
believes. What decides is tested in test_slips.py.

All tables and languages: `pytest tests/reconcile/test_slips_committed.py -m soak`.
"""

from collections.abc import Sequence

import pytest

from memories.models import Fact, Role, Status, Tenant
from tests import factories
from tests.model import Model, candidate
from tests.reconcile.reconciling import attempt
from tests.reconcile.slipping import MOST, PROFILE, REMOVAL, TABLES_OF_SLIPS, Slip, spoken, table

LANGUAGES = ("en", "zh", "de", "es", "fr", "ja")


def cases(tables: Sequence[str], languages: Sequence[str]) -> list[Slip]:
    """Of each table one for each kind, language and verdict."""
    first: dict[tuple[str, str, str, bool], Slip] = {}
    for name in tables:
        for case in table(name):
            if case.kind != PROFILE and case.language in languages:
                first.setdefault((name, case.kind, case.language, case.is_slip), case)
    return list(first.values())


@pytest.mark.parametrize(
    ("tables", "languages", "least"),
    [(TABLES_OF_SLIPS[:1], LANGUAGES[:2], 40), pytest.param(TABLES_OF_SLIPS, LANGUAGES, 300, marks=pytest.mark.soak)],
)
def test_slips_wait_in_the_rows_and_right_answers_do_not(
    model: Model, db: None, tables: Sequence[str], languages: Sequence[str], least: int
) -> None:
    tenant = factories.tenant()
    played = cases(tables, languages)
    assert len(played) >= least
    believed = {case: _is_believed(model, tenant, case) for case in played}
    for is_slip in (True, False):
        wrong = [case for case, is_active in believed.items() if case.is_slip == is_slip and is_active == is_slip]
        assert len(wrong) <= MOST * sum(case.is_slip == is_slip for case in played), wrong


def _is_believed(model: Model, tenant: Tenant, case: Slip) -> bool:
    """Whether the answer's fact is active after the commit; of a removal, whether the known one is not any more."""
    person = factories.end_user(tenant)
    said = [(Role.ASSISTANT if is_assistants else Role.USER, text) for text, is_assistants in spoken(case.said)]
    cited = [number for number, (role, _) in enumerate(said, start=1) if role == Role.USER]
    if case.kind != REMOVAL:
        attempt(model, person, said, candidate(case.answer, evidence=cited))
        return Fact.objects.get(end_user=person).status == Status.ACTIVE
    known = factories.fact(person, case.answer)
    attempt(model, person, said, removed=[{"fact": 1, "reason": "It is over", "evidence": cited}])
    return Fact.objects.get(pk=known.pk).status != Status.ACTIVE
