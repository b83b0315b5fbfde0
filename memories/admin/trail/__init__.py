"""The audit trail and its seals."""
