"""One person: the list, the page, its profile and timeline, adding, merging."""
