"""Retrieval: a person's memories in the order in which they answer a query.

In: a person, a query, a viewer. Out: search hits with their scores. Processes cache an index of a person's memories.
The only write happens in the background: that memories were recalled.
"""
