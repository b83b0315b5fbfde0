"""`python -m evals.harness.scripted PORT`: a model for smoke tests, that gives every question the same answer."""

import json
import sys
import time

from tests.clients_suite import upstream

ANSWER = {"reasoning": "scripted", "answer": "I do not know.", "choice": "a", "correct": False, "reason": "scripted"}


def main() -> None:
    with upstream.running(int(sys.argv[1])) as endpoint:
        endpoint.begin([{"say": json.dumps(ANSWER)}])
        sys.stdout.write(f"{endpoint.url}\n")
        sys.stdout.flush()
        while True:
            time.sleep(60)


if __name__ == "__main__":
    main()
