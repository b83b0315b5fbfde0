"""How people mean what they say: which clauses state something of themselves (`moods`), whether a statement is what
they said (`slips`, `arrangements`), and whether they say that something is over (`endings`). Pure."""
