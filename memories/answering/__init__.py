"""Answers to questions about a person, with the memories that each sentence rests on."""
