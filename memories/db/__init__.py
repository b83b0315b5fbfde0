"""What hand-written statements share: rows in binary, and timeouts of statements and locks."""
