"""Memory files: paths, lists, windows of lines, matches and versions."""

from collections.abc import Callable
from typing import Any

from rest_framework import serializers

from memories.api.v1.facts.serializers import ActorSerializer
from memories.api.v1.fields import (
    AgentId,
    ExactText,
    Flag,
    Identifier,
    OneOf,
    OrNull,
    PageQuery,
    StatedByField,
    Strict,
    Timestamp,
    Whole,
)
from memories.files import paths
from memories.files.globs import LONGEST_PATTERN
from memories.models import Encoding, FileVersion, Trust
from memories.models.memories.files import LONGEST_PATH

# Of one request.
MOST_FILES = 200
MOST_LINES = 100_000
LONGEST_TEXT = 1_500_000


class _Path(ExactText):
    """A path that `fault_of` finds nothing wrong with."""

    def __init__(self, fault_of: Callable[[str], str | None], **kwargs: Any) -> None:
        self.fault_of = fault_of
        # Blank ones get the sentence about paths, too.
        super().__init__(allow_blank=True, max_length=LONGEST_PATH, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        path = super().run_validation(data)
        if isinstance(path, str) and (fault := self.fault_of(path)):
            raise serializers.ValidationError(fault, code="invalid_path")
        return path


class FilePath(_Path):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(paths.fault_of_file, **kwargs)


class FolderPath(_Path):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(paths.fault_of_folder, **kwargs)


class _FileOwner(Strict):
    user_id = Identifier()
    agent_id = AgentId(help_text="Whose files: those of this agent; without it, those of requests that name none.")


class _FileReader(_FileOwner):
    session_id = Identifier(
        required=False,
        allow_null=True,
        help_text="The conversation, as in `/turns`: which skills it is given is decided by it, and counted for it.",
    )


class FilesQuery(_FileReader):
    path = FolderPath(default=paths.ROOT, help_text="A folder, with or without a slash at its end.")


class ContentQuery(_FileReader):
    path = FilePath()
    offset = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0, help_text="Lines to pass over.")
    limit = serializers.IntegerField(min_value=0, max_value=MOST_LINES, default=2_000, help_text="Lines to return.")


class FileDeletion(_FileOwner):
    path = FolderPath(help_text="A file, or a folder with all that is in it.")


class FileHistoryQuery(PageQuery, _FileOwner):
    path = FilePath()


class NewContentSerializer(_FileOwner):
    path = FilePath()
    content = ExactText(allow_blank=True, max_length=LONGEST_TEXT)
    stated_by = StatedByField()


class FileEditSerializer(_FileOwner):
    path = FilePath()
    old_string = ExactText(allow_blank=True, max_length=LONGEST_TEXT, help_text="The exact text to replace.")
    new_string = ExactText(allow_blank=True, max_length=LONGEST_TEXT)
    replace_all = Flag(default=False, help_text="Every occurrence; without it there must be exactly one.")
    stated_by = StatedByField()

    def validate_old_string(self, old: str) -> str:
        if not old:
            raise serializers.ValidationError("Give the exact text to replace: it cannot be empty.", code="blank")
        return old


class GlobSerializer(_FileReader):
    pattern = ExactText(max_length=LONGEST_PATTERN, help_text="Like `*.md` or `notes/**/*.md`.")
    path = FolderPath(default=paths.ROOT, help_text="The folder that is searched, or one file.")


class GrepSerializer(_FileReader):
    pattern = ExactText(allow_blank=True, max_length=10_000, help_text="Text as it is: no regular expression.")
    path = FolderPath(default=paths.ROOT, help_text="The folder that is searched, or one file.")
    glob = ExactText(required=False, allow_null=True, max_length=LONGEST_PATTERN, help_text="Only files that match.")
    max_count = Whole(
        required=False, allow_null=True, min_value=0, max_value=2**31 - 1, help_text="At most so many lines."
    )


class FileToUploadSerializer(Strict):
    """A file to store. `encoding` says what `content` is; base64 of a UTF-8 text becomes a text."""

    # Its faults are answered file by file.
    path = ExactText(allow_blank=True, max_length=10_000)
    content = ExactText(allow_blank=True, max_length=2 * LONGEST_TEXT)
    encoding = OneOf(
        Encoding.values, default=Encoding.UTF_8, help_text="`base64`: bytes, kept as text if they are UTF-8."
    )


class UploadSerializer(_FileOwner):
    files = serializers.ListField(child=FileToUploadSerializer(), min_length=1, max_length=MOST_FILES)
    stated_by = StatedByField()


class DownloadSerializer(_FileReader):
    paths = serializers.ListField(
        child=ExactText(allow_blank=True, max_length=10_000), min_length=1, max_length=MOST_FILES
    )


class FileRestoreSerializer(_FileOwner):
    path = FilePath()
    version = Whole(min_value=1, max_value=2**31 - 1, help_text="The version whose content it gets again.")


class FileSerializer(serializers.Serializer[Any]):
    """A file without its content."""

    path = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes, in UTF-8.")
    encoding = serializers.ChoiceField(Encoding.values, help_text="`base64`: it is no text.")
    version = serializers.IntegerField(help_text="From 1; 0: the first file, which nobody wrote yet.")
    locked = serializers.BooleanField(help_text="An operator locked it: no key changes it.")
    written_by = serializers.CharField(
        source="actor_kind",
        help_text="Who wrote it last: `key` (an application), `operator`, `command`; empty: nobody.",
    )
    trust = OrNull(help_text=f"Of whoever wrote it last: {', '.join(Trust.values)}; null: nobody.")
    created_at = Timestamp()
    modified_at = Timestamp(source="updated_at")
    expires_at = Timestamp(help_text="Of scratch files; else null.", allow_null=True)


class FileContentSerializer(FileSerializer):
    """A window of its lines; start_line and end_line are null where no line is in it."""

    content = serializers.CharField(help_text="These lines; all of it, if it is base64.")
    total_lines = serializers.IntegerField(help_text="Lines of the whole file; a newline at the end begins none.")
    start_line = serializers.IntegerField(allow_null=True, help_text="From 1.")
    end_line = serializers.IntegerField(allow_null=True)
    next_offset = serializers.IntegerField(allow_null=True, help_text="Where the rest begins; null at the end.")
    blank = serializers.BooleanField(help_text="The whole file is empty, or white space.")


class StoredFileSerializer(FileSerializer):
    """A file after a change."""

    created = serializers.BooleanField(help_text="There was none at this path.")
    occurrences = serializers.IntegerField(help_text="Places that an edit changed.")
    redactions = serializers.IntegerField(help_text="Secrets that were cut out.")


class FileEntrySerializer(serializers.Serializer[Any]):
    """A file in a list, or a folder: its path ends with a slash."""

    path = serializers.CharField()
    is_dir = serializers.BooleanField()
    size = serializers.IntegerField(help_text="Of a folder 0.")
    modified_at = Timestamp(allow_null=True, help_text="Of a folder null.")
    version = serializers.IntegerField(allow_null=True)
    locked = serializers.BooleanField()


class FoundFilesSerializer(serializers.Serializer[Any]):
    """Files that match a pattern, the newest first; `truncated`: not all were looked at."""

    results = FileEntrySerializer(many=True)
    truncated = serializers.BooleanField(help_text="The search ended before it had seen all.")


class FileMatchSerializer(serializers.Serializer[Any]):
    """A line that contains the text."""

    path = serializers.CharField()
    line = serializers.IntegerField(help_text="From 1.")
    text = serializers.CharField()


class FoundLinesSerializer(serializers.Serializer[Any]):
    """Lines that contain a text; `truncated`: there are more."""

    results = FileMatchSerializer(many=True)
    truncated = serializers.BooleanField(help_text="There are more.")


class UploadedFileSerializer(serializers.Serializer[Any]):
    """What became of a file; `error` is None, or invalid_path, is_directory, permission_denied."""

    path = serializers.CharField()
    error = serializers.CharField(
        allow_null=True, help_text="invalid_path, is_directory, permission_denied (`detail` says why); null: stored."
    )
    detail = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    redactions = serializers.IntegerField()


class UploadedSerializer(serializers.Serializer[Any]):
    """What became of each file."""

    results = UploadedFileSerializer(many=True)


class DownloadedFileSerializer(serializers.Serializer[Any]):
    """A file as a whole; `error` is None, or file_not_found, invalid_path, is_directory."""

    path = serializers.CharField()
    content = serializers.CharField(allow_null=True)
    encoding = serializers.CharField(allow_null=True, help_text="utf-8, base64; null with an error.")
    error = serializers.CharField(allow_null=True, help_text="file_not_found, invalid_path, is_directory; else null.")
    version = serializers.IntegerField(allow_null=True)
    created_at = Timestamp(allow_null=True)
    modified_at = Timestamp(allow_null=True)


class DownloadedSerializer(serializers.Serializer[Any]):
    """Each file, or why not."""

    results = DownloadedFileSerializer(many=True)


class FilesDeletedSerializer(serializers.Serializer[Any]):
    """How many files went."""

    path = serializers.CharField()
    deleted = serializers.IntegerField(help_text="How many files.")


class FileVersionSerializer(serializers.Serializer[FileVersion]):
    """A version of a file, with all of its content; `restored` is the version that it brought back."""

    version = serializers.IntegerField()
    verb = serializers.ChoiceField(FileVersion.Verb.values)
    actor = ActorSerializer(source="*")
    trust = serializers.ChoiceField(Trust.values)
    content = serializers.CharField(help_text="The whole file in this version; of a deletion empty.")
    encoding = serializers.ChoiceField(Encoding.values)
    size = serializers.IntegerField()
    restored = serializers.IntegerField(
        allow_null=True, help_text="Of a restoration: the version that it brought back."
    )
    reason = OrNull()
    created_at = Timestamp()
