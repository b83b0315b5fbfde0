"""Adapters of neutral harnesses for memory systems: each runs in the harness's own environment, by its own rules."""
