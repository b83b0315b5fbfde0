"""What an agent is given about a person, and why: the playground and the live context."""
