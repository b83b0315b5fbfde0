"""Trajectories: the list, and one of them step by step."""
