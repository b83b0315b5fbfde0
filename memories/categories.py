"""What a fact can be about: one row for each category says all that hangs on it. Pure.

A further category is a member of `Category` and its row in `CATEGORIES`. API, pages, prompts, decay, contexts and
upkeep follow. When a model gives it may be said in `INSTRUCTIONS` of llm/prompts/memory_update_text.py, and by which
words it is given without a model in extraction/data/.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Category(models.TextChoices):
    IDENTITY = "identity", _("Identity")
    RELATIONSHIP = "relationship", _("Relationship")
    PREFERENCE = "preference", _("Preference")
    BEHAVIOR = "behavior", _("Behavior")
    SKILL = "skill", _("Skill")
    KNOWLEDGE = "knowledge", _("Knowledge")
    CONTEXT = "context", _("Context")
    GOAL = "goal", _("Goal")
    DECISION = "decision", _("Decision")
    CONSTRAINT = "constraint", _("Constraint")
    CORRECTION = "correction", _("Correction")
    OTHER = "other", _("Other")


class MemoryType(models.TextChoices):
    """The type of a fact follows from its category (rules.md, 3.9)."""

    PROFILE = "profile", _("Profile")
    PREFERENCE = "preference", _("Preference")
    PROCEDURAL = "procedural", _("Procedural")
    SEMANTIC = "semantic", _("Semantic")


@dataclass(frozen=True)
class CategoryRow:
    """`heading` stands above its facts on the person's own page.

    fades: whether its facts lose strength with time (rules.md, 6); a tenant can give it a half-life of its own.
    in_each_context: whether its facts are told whatever was asked, as far as there is room for them.
    is_correction: told before all others and with the mistake that it names; upkeep leaves it alone, and where there
        are too many facts it goes last.
    ends_by_people: whether a model that finds it over asks a person, instead of ending it.
    """

    heading: Promise
    type: MemoryType = MemoryType.SEMANTIC
    fades: bool = True
    in_each_context: bool = False
    is_correction: bool = False
    ends_by_people: bool = False
    imported_from: tuple[str, ...] = ()
    """Names that DeerFlow's documents have for it; its own name is one of them."""


CATEGORIES: Mapping[str, CategoryRow] = {
    # Who somebody is must not fade, nor an allergy.
    Category.IDENTITY: CategoryRow(_("Who you are"), MemoryType.PROFILE, fades=False),
    Category.RELATIONSHIP: CategoryRow(_("People around you"), MemoryType.PROFILE, fades=False),
    Category.PREFERENCE: CategoryRow(_("What you like"), MemoryType.PREFERENCE, in_each_context=True),
    Category.BEHAVIOR: CategoryRow(_("What you do"), MemoryType.PROCEDURAL, imported_from=("cognitive",)),
    Category.SKILL: CategoryRow(_("What you can do"), MemoryType.PROCEDURAL),
    Category.KNOWLEDGE: CategoryRow(_("What you know")),
    Category.CONTEXT: CategoryRow(_("Your situation"), imported_from=("",)),
    Category.GOAL: CategoryRow(_("What you want")),
    Category.DECISION: CategoryRow(_("What you decided")),
    Category.CONSTRAINT: CategoryRow(_("What must be heeded"), fades=False, in_each_context=True, ends_by_people=True),
    Category.CORRECTION: CategoryRow(_("What went wrong before"), is_correction=True),
    Category.OTHER: CategoryRow(_("Other things")),
}
IN_EACH_CONTEXT = tuple(name for name, row in CATEGORIES.items() if row.in_each_context)
CORRECTIVE = tuple(name for name, row in CATEGORIES.items() if row.is_correction)
END_BY_PEOPLE = tuple(name for name, row in CATEGORIES.items() if row.ends_by_people)


def choices() -> Sequence[tuple[str, str | Promise]]:
    """Those of the column: named in migrations, so that a further category needs none."""
    return Category.choices


def of_type(memory_type: str) -> list[str]:
    """The categories of that type."""
    return [name for name, row in CATEGORIES.items() if row.type == memory_type]
