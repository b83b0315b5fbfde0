"""The profile: six sections about a person, each a few sentences."""

from memories.kinds.kind import Kind, Served
from memories.models import ProfileSection

PROFILE = Kind("profile", "sections", ProfileSection, served=Served(2))
