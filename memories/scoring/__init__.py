"""Scoring as pure arithmetic: decay, and how near a query is to what a person has said. No Django, no clock."""
