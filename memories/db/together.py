"""Operations of a migration that are applied together: two states of the models instead of one after each operation."""

from collections.abc import Sequence

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class Together(Operation):
    """Operations of which none needs what another one of them makes, but that a model may refer to another one.

    Django would make the classes of all related models anew after each of them, which is most of the time that the
    migrations of an empty database take. Here each operation is given the models before all of them and after all.
    """

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations

    @property
    def reversible(self) -> bool:  # type: ignore[override]
        return all(operation.reversible for operation in self.operations)

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        # While there are no classes, operations make none.
        made = state.__dict__.pop("apps", None)
        for operation in self.operations:
            operation.state_forwards(app_label, state)
        if made is not None:
            state.apps  # noqa: B018
            # They are whole: RunPython need not make them once more.
            state.is_delayed = False

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for operation in reversed(self.operations):
            operation.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "; ".join(operation.describe() for operation in self.operations)
