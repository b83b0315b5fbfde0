"""What a receipt says, and how it looks."""
