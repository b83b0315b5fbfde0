"""Memory files: texts that agents keep about a person under paths."""

from memories.kinds.kind import Kind, Served
from memories.models import MemoryFile

FILE = Kind("file", "files", MemoryFile, served=Served(5), is_purged=True)
