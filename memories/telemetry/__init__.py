"""What the hub tells of its own work, while it works: counts, fields of log lines, traces. None of it names a person.

In: what a process did, and how long it took. Out: files that every web process of this home can add up
(`slots.py`), as families of Prometheus (`families.py`); the request, task and tenant of lines of the log
(`log_fields.py`); spans for OpenTelemetry (`traces.py`). It imports nothing of the hub and writes no table.
"""
