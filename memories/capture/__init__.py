"""Capture: what is posted to sessions, by the API, the gateway or MCP, and sessions that are flushed or ended.

In: messages of a session, or its flush or end. Out: Turn rows with gapless numbers, end users and sessions created
where missing, and armed queue rows; all in one transaction.
"""
