"""MCP at /mcp: a person's memory as tools, resources and a prompt for any agent that speaks the Model Context Protocol.

Comes in: requests of one key about one person, read by the official SDK (`protocol.py`, loaded with the first of them).
Goes out: what contexts, searches and lists show, framed as data; turns, facts, proposals and requests, written by the
same functions that the API calls. It writes no table itself.
"""
