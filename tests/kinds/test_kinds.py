"""What a kind declares is there: the code that treats kinds alike asks for nothing else."""

from importlib import import_module

from memories.kinds import EMBEDDED, KINDS, PLAIN
from memories.models import Tenant
from memories.models.columns import Columns
from memories.text.memory_block import FRAMES, PLAIN_HEADINGS

# Of a plain kind (memories/kinds/kind.py).
COLUMNS = {"tenant", "end_user", "agent_id", "actor_id", "content", "created_at", "trashed_at", "change_set"}


def test_names_and_places_are_once() -> None:
    for names in ([kind.name for kind in KINDS], [kind.plural for kind in KINDS]):
        assert len(set(names)) == len(names)
    for part in ("served", "embedded"):
        places = [declared.place for kind in KINDS if (declared := getattr(kind, part))]
        assert len(set(places)) == len(places) > 1


def test_a_plain_kind_has_what_its_verbs_use() -> None:
    assert PLAIN
    for kind in PLAIN:
        names = {field.name for field in kind.model._meta.get_fields()}
        assert kind.plain
        assert names >= COLUMNS | {kind.plain.topic}, kind.name
        assert all(callable(getattr(kind.rows.all(), verb)) for verb in ("of", "present", "discarded"))
        assert import_module(kind.plain.search).hits
        assert import_module(kind.plain.api).URLS
        assert kind.model in dict(import_module(kind.plain.admin).PAGES)
        assert kind.plain.headings.keys() == FRAMES.keys() == set(Tenant.ContextLanguage.values)
        for language, frame in FRAMES.items():
            assert frame.headings[PLAIN_HEADINGS[kind.name]] == kind.plain.headings[language]


def test_an_embedded_kind_names_columns_that_are_there() -> None:
    for kind in EMBEDDED:
        assert kind.embedded
        names = {field.name for field in kind.model._meta.get_fields()}
        assert names >= {*kind.embedded.columns, kind.embedded.since, "content_hash", "embedded_hash"}, kind.name
        assert kind.embedded.vectors._meta.get_field(kind.embedded.reference).related_model is kind.model


def test_every_model_of_a_kind_says_what_its_columns_mean() -> None:
    assert all(isinstance(getattr(kind.model, "columns", None), Columns) for kind in KINDS)
