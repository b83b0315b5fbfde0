"""Dreams: a model brings a person's memory files up to date with their new episodes.

In come episodes that nobody dreamt of yet, and the files of one person and agent that the tenant names for it. Out come
versions of these files, and a record of each edit that was proposed. It writes `Dream`, `DreamEdit` and
`DreamedEpisode`, and through curation/files.py `MemoryFile` and `FileVersion`.
"""
