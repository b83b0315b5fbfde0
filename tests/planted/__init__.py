"""Thirty promises of the hub, each with a fault that breaks it and the tests that must fail then.

`faults.toml` holds the faults. `python -m tests.planted` plants them one after the other.
"""
