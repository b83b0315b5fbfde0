"""What is remembered: facts, episodes, profiles, their evidence, revisions, reviews and vectors."""
