"""Merges two people, and undoes that; each module holds both directions of one subject."""
