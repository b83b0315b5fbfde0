"""Vectors of turns, facts, episodes and items of the store, made in the background in the space that serves.

In: rows without a vector. Out: TurnVector, FactVector, EpisodeVector, StoreItemVector rows; a change of the model fills
a second space.
"""
