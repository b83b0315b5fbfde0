"""Verbs on facts: one module for each, and `changing` is their frame."""
