"""Vectors of turns, memories and items of the store, made in the background in the space that serves.

In: rows without a vector. Out: rows of the tables of vectors; a change of the model fills a second space.
"""
