"""Memory files: text files that agents keep about a person, by tenant, person and agent.

In: paths, patterns and texts as callers give them. Out: lists, windows of lines, matches, and new versions. `paths`,
`globs` and `texts` are pure; `reading` answers what a person's files are; `versions` writes tables memories_memoryfile
and memories_fileversion for the verbs of curation/files.py, which lock the person first.
"""
