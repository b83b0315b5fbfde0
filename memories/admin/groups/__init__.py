"""Groups of people: their members, and what they share."""
