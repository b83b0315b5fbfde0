"""/graph: what holds between named things about a person, and when."""
