from django.db import migrations

# Column → lowest and highest, as the table of numbers has them.
FOLDED = {
    "debounce_seconds": (1, 300),
    "max_wait_seconds": (1, 3600),
    "lease_seconds": (2, 3600),
    "max_attempts": (1, 20),
}
_PAIRS = ", ".join(f"'{name}', {name}" for name in FOLDED)
_NAMES = ", ".join(f"'{name}'" for name in FOLDED)
# The columns are what holds until now, so they win.
FOLD = f"""
UPDATE memories_tenant
    SET numbers = CASE jsonb_typeof(numbers) WHEN 'object' THEN numbers ELSE '{{}}' END
        || jsonb_strip_nulls(jsonb_build_object({_PAIRS}))
    WHERE num_nonnulls({", ".join(FOLDED)}) > 0
"""


def _column(name: str) -> str:
    """What a column takes of the numbers: nothing of what a hand may have written there."""
    low, high = FOLDED[name]
    value = f"numbers ->> '{name}'"
    # CASE decides in order: what is no whole number is never cast.
    return f"""{name} = CASE
        WHEN jsonb_typeof(numbers -> '{name}') IS DISTINCT FROM 'number' OR {value} !~ '^[0-9]{{1,4}}$' THEN NULL
        WHEN ({value})::integer BETWEEN {low} AND {high} THEN ({value})::integer END"""


UNFOLD = f"""
UPDATE memories_tenant SET {", ".join(map(_column, FOLDED))}, numbers = numbers - ARRAY[{_NAMES}]
    WHERE jsonb_typeof(numbers) = 'object'
"""


class Migration(migrations.Migration):
    """The four numbers that were columns join the others in `numbers`."""

    dependencies = [("memories", "0019_decay")]
    operations = [
        migrations.RunSQL(FOLD, UNFOLD),
        *(
            migrations.RemoveField(model_name="tenant", name=name)
            for name in FOLDED
        ),
    ]
