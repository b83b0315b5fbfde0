"""Analysis of texts alone: no database, no model call.

In: texts of turns, candidates and summaries. Out: cleaned texts, sentences, words, signals, and the trust of a
statement by the sides that used its words. `secrets` redacts, `injection` finds prompt injection. It writes nothing.
"""
