"""The gateway: memory for any client of OpenAI's API. A request gets the person's context and goes on to the tenant's
endpoint; the answer streams through untouched; what both said becomes turns.

It runs in the web server's loop: open streams hold no thread. Only what asks the database does, for that long.
"""
