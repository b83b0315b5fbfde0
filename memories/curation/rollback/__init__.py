"""Roll back: what came of a session, an agent, a key or a time is taken back."""
