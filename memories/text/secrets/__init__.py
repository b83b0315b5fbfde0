"""Secrets in a text: found by their form or by what announces them, and replaced by `[redacted:<kind>]`."""
