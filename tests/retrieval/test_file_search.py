"""Memory files in a search: by words and by meaning, with path and lines; whose files, and how they are cut."""

from datetime import timedelta
from typing import Any

import pytest

from memories.llm import embeddings
from memories.models import EmbeddingSpace, EndUser
from memories.retrieval import file_search, search
from memories.retrieval.file_search import cut
from memories.retrieval.search import SearchFilters, SearchRequest
from tests import factories
from tests.factories import NOW
from tests.vectors import embed_all

HOUSE = """# The house

The boiler was replaced in 2019 by Kessler.
He came with two men.

## Rooms
- The attic is dry.
- The cellar floods
  every spring.
"""


def found(person: EndUser, query: str, **over: Any) -> list[search.Finding]:
    filters = SearchFilters(**over)
    asked = SearchRequest(person.external_id, query, kinds=("file",), filters=filters)
    return search.search(tenant=person.tenant, search=asked, now=NOW).results


def test_a_passage_is_found_by_its_words_with_path_and_lines(person: EndUser) -> None:
    row = factories.memory_file(person, "/docs/a.md", HOUSE)
    factories.memory_file(person, "/docs/b.md", "Nothing of interest.\n")
    best = found(person, "boiler Kessler")[0]
    assert (best.kind, best.id, best.path, best.lines, best.created_at) == ("file", row.pk, "/docs/a.md", [1, 4], NOW)
    assert best.text == "# The house\n\nThe boiler was replaced in 2019 by Kessler.\nHe came with two men."
    assert best.score_parts["lexical"] > 0
    assert found(person, "cellar")[0].lines == [8, 9]


def test_and_by_its_meaning(person: EndUser) -> None:
    for path, text in (("/a.md", "She is afraid of dogs."), ("/b.md", "The invoice was paid in March.")):
        factories.memory_file(person, path, text)
    # Nothing else was embedded yet: the first search begins.
    assert not EmbeddingSpace.objects.exists()
    hits = found(person, "Which animals frighten her?")
    assert (hits[0].path, hits[0].score_parts["lexical"]) == ("/a.md", 0)
    assert hits[0].score_parts["vector"] > hits[1].score_parts["vector"]


def test_what_was_read_is_not_read_again_and_a_change_is(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    row = factories.memory_file(person, "/a.md", "- She sings.\n- She swims like a fish.")
    factories.fact(person)
    embed_all(person)
    found(person, "song")
    asked: list[str] = []
    embed = embeddings.embed

    def noted(texts: Any, **more: Any) -> Any:
        asked.extend(texts if more.get("kind", "passage") == "passage" else [])
        return embed(texts, **more)

    monkeypatch.setattr(embeddings, "embed", noted)
    found(person, "song")
    assert asked == []
    row.content += "\n- She knits."
    row.save()
    found(person, "song")
    assert asked == ["- She knits."]


def test_no_more_than_some_are_read_for_their_meaning(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_search, "MOST_EMBEDDED", 1)
    factories.memory_file(person, "/new.md", "She sings.", updated_at=NOW)
    factories.memory_file(person, "/old.md", "Her boiler is old.", updated_at=NOW - timedelta(days=1))
    parts = {one.path: one.score_parts for one in found(person, "boiler")}
    assert (parts["/old.md"]["vector"], parts["/new.md"]["vector"] != 0) == (0, True)
    assert parts["/old.md"]["lexical"] > 0


def test_only_the_files_of_the_agent_that_asks(person: EndUser) -> None:
    factories.memory_file(person, "/mine.md", "She sings.")
    factories.memory_file(person, "/coder.md", "She sings.", agent_id="coder")
    factories.memory_file(person, "/gone.md", "She sings.", trashed_at=NOW)
    factories.memory_file(person, "/temp/scratch.md", "She sings.", expires_at=NOW + timedelta(days=1))
    factories.memory_file(person, "/picture.png", "She sings.", encoding="base64")
    factories.memory_file(factories.end_user(person.tenant), "/theirs.md", "She sings.")
    assert [one.path for one in found(person, "sings")] == ["/mine.md"]
    assert [(one.path, one.agent_id) for one in found(person, "sings", agent_id="coder")] == [("/coder.md", "coder")]


@pytest.mark.parametrize("given", [{"category": "goal"}, {"tags": ["x"]}, {"session_id": "s1"}, {"since": NOW}])
def test_filters(person: EndUser, given: dict[str, Any]) -> None:
    factories.memory_file(person, "/a.md", "She sings.", updated_at=NOW - timedelta(hours=1))
    assert found(person, "sings", **given) == []
    assert found(person, "sings", until=NOW) != []


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("", []),
        ("\n \n", []),
        ("one\ntwo\n\n\nthree\n", [(1, 2, "one\ntwo"), (5, 5, "three")]),
        ("# A\n## B\ntext\n# C\n", [(1, 3, "# A\n## B\ntext"), (4, 4, "# C")]),
        ("- a\n  more\n* b\n1. c\n2、d", [(1, 2, "- a\n  more"), (3, 3, "* b"), (4, 4, "1. c"), (5, 5, "2、d")]),
        ("x" * 600 + "\n" + "y" * 600, [(1, 1, "x" * 600), (2, 2, "y" * 600)]),
    ],
)
def test_how_a_text_is_cut(text: str, passages: list[tuple[int, int, str]]) -> None:
    assert list(cut(text)) == passages
