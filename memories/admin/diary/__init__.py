"""Diary entries of agents."""
