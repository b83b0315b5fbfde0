"""Vectors of turns, facts, episodes, diary entries and items of the store, made in the background in the space that
serves.

In: rows without a vector. Out: TurnVector, FactVector, EpisodeVector, DiaryVector and StoreItemVector rows; a change of
the model fills a second space.
"""
