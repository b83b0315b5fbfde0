"""The store: values under namespaces and keys, in the wire form of LangGraph's SDK."""
