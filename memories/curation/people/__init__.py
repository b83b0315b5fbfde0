"""Verbs on people: their record, their ids, merging two of them."""
