"""What a pass of retention deletes: `turns.py` with their sessions, `records.py` for the rest; `passes.py` has the pass
itself, and whom it passes over."""
