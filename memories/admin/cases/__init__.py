"""Privacy cases: the board, the page of each case, its files."""
