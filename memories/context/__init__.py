"""Contexts: what an agent is given, cut to a token budget.

In: a person, a query, a token budget. Out: the rendered memory block and the messages of the window. It writes nothing.
"""
