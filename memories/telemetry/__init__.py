"""What the hub tells of its own work, while it works: counts for /metrics. Nothing of it names a person.

In: what a process did, and how long it took. Out: files that every web process of this home can add up
(`slots.py`), as families of Prometheus (`families.py`). It imports nothing of the hub and writes no table.
"""
