"""What the hub knows about where personal data can be; cases and erasure build on it."""
