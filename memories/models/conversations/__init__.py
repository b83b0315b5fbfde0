"""Conversations: sessions, turns, their queue, the runs over them."""
