"""Which type of memory a category is."""

from memories.models import Category, Fact
from tests.each import each

TYPES = {
    "profile": {"identity", "relationship"},
    "preference": {"preference"},
    "procedural": {"behavior", "skill"},
    "semantic": {"knowledge", "context", "goal", "decision", "constraint", "correction", "other"},
}


@each(("name", "categories"), TYPES.items())
def test_a_category_has_its_type(name: str, categories: set[str]) -> None:
    assert {category for category in Category if Fact(category=category).type == name} == categories


def test_each_category_is_in_the_table() -> None:
    assert set().union(*TYPES.values()) == set(Category)
