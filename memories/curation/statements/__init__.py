"""What keys state: whose words they write, what that rests on, the guard of it, and memory documents."""
