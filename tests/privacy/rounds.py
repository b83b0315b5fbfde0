"""`python -m tests.privacy.rounds --rounds 50`: many rounds of amid.py, of which `make test` plays a few."""

import argparse
import sys
from pathlib import Path

import pytest


def main() -> int:
    """Pytest makes the database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    given = parser.parse_args()
    test = Path(__file__).with_name("test_rounds.py")
    return int(pytest.main(["-s", "-p", "no:cacheprovider", "--rounds", str(given.rounds), str(test)]))


if __name__ == "__main__":
    sys.exit(main())
