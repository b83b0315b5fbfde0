"""The store: values under a namespace and a key, in the form that LangGraph's stores have.

In: gets, puts, deletions, searches and listings of namespaces, of a key of the API. Out: items. Writes StoreItem, and
EndUser rows of people whom a namespace names; the vectors of items are the embedder's.
"""
