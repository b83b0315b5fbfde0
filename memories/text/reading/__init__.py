"""How people mean what they say: which clauses state something of themselves (`moods`, by the words of `patterns`),
whether a statement is what they said (`slips`, which asks `supporting`, `polarity`, `arrangements` and `details`), and
whether they say that something is over (`endings`). Pure."""
