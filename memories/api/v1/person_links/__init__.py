"""/person-links: the page for the person, opened by a link."""
