"""The audit trail sealed in chains, checked, written out and shortened."""
