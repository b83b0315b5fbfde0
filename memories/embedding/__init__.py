"""Vectors of turns, facts and episodes, made in the background in the space that serves.

In: rows without a vector. Out: TurnVector, FactVector, EpisodeVector rows; a change of the model fills a second space.
"""
