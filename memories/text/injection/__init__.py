"""Prompt injection: whether a text speaks to a model, by phrases and by the meaning of its sentences."""
