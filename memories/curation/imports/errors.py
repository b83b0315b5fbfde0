"""Why a file is not taken, or an import does not do what somebody asks of it."""

from memories.exceptions import Conflict, MemoryHubError


class ImportTooLarge(MemoryHubError):
    """The file is larger than the hub takes. An export can be divided: import some conversations at a time."""

    code = "import_too_large"
    status = 413


class TooManyImports(Conflict):
    """As many files as the tenant may have wait to be imported. Start, or undo, one of them first."""

    code = "too_many_imports"


class ImportNotReady(Conflict):
    """The import is in another state by now. Look at it again."""

    code = "import_state"


class ImportFileGone(Conflict):
    """The file of this import was deleted. Upload it again: what is stored already is not stored twice."""

    code = "import_file_gone"
