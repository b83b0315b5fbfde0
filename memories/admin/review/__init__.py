"""The review queue: what waits for a decision."""
