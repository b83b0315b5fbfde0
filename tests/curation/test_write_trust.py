"""Whose words a write is: a table of what a key writes as, what a request says, and what comes of it."""

from memories import conf
from memories.curation.statements.write_trust import StatedBy, write_trust_of
from tests.each import each

PLAIN, TRUSTING = conf.Rules(), conf.Rules(trust_assistant=True)
# A key's own, what the request says, then: trust, extractor, believed, and believed where the tenant trusts assistants.
CASES = [
    ("user", None, "user", "api", True, True),
    ("user", "user", "user", "api", True, True),
    ("user", "agent", "assistant", "api", False, True),
    ("user", "tool", "tool", "api", False, False),
    ("user", "import", "user", "import", True, True),
    ("agent", None, "assistant", "api", False, True),
    ("agent", "user", "assistant", "api", False, True),
    ("agent", "agent", "assistant", "api", False, True),
    ("agent", "tool", "tool", "api", False, False),
    ("agent", "import", "assistant", "import", False, False),
]


@each(("writes_as", "stated_by", "trust", "extractor", "believed", "trusting"), CASES)
def test_a_request_only_lowers(
    writes_as: str, stated_by: str | None, trust: str, extractor: str, believed: bool, trusting: bool
) -> None:
    write_trust = write_trust_of(writes_as=writes_as, stated_by=stated_by)
    assert (write_trust.trust, write_trust.extractor) == (trust, extractor)
    assert (write_trust.is_believed(PLAIN), write_trust.is_believed(TRUSTING)) == (believed, trusting)


def test_the_table_is_whole() -> None:
    asked = {(key, said) for key, said, *_ in CASES}
    assert asked == {(key, said) for key in ("user", "agent") for said in (None, *StatedBy)}


@each(
    ("stated_by", "source", "kept"),
    [
        (None, "", "explicit_user_input"),
        (None, "external_data", "external_data"),
        ("agent", "", "system_generated"),
        ("agent", "implicit_inference", "implicit_inference"),
        ("agent", "explicit_user_input", "system_generated"),
        ("tool", "", "external_data"),
        ("tool", "explicit_user_input", "external_data"),
    ],
)
def test_nobody_else_makes_it_the_users_explicit_word(stated_by: str | None, source: str, kept: str) -> None:
    assert write_trust_of(writes_as="user", stated_by=stated_by).source(source) == kept
