"""What is over by its age, and the passes that take it."""
