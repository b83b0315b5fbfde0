"""`python -m evals.extraction`: the prompt, the configured model and the gate on labelled dialogues.

A table on standard output: precision and recall by language and kind. Needs no database and stores nothing.
"""

import argparse
import os
import sys
from pathlib import Path

import django

UNCONFIGURED = (
    "No language model is configured, so nothing was run: set OPENAI_API_KEY, or OPENAI_BASE_URL for any "
    "OpenAI-compatible server, and MEMORYHUB_LLM_MODEL.\n"
)


def main(given: list[str] | None = None) -> None:
    """Measure the dialogues that were asked for."""
    from evals.extraction import corpus, report
    from evals.extraction.measure import measure
    from memories import conf
    from memories.exceptions import ModelError
    from memories.llm import client
    from memories.llm.prompts import memory_update

    arguments = _arguments(given, corpus.KINDS)
    if not client.is_configured():
        sys.stdout.write(UNCONFIGURED)
        return
    try:
        client.check()
    except ModelError as error:
        raise SystemExit(f"The endpoint does not answer ({error.code}), so nothing was run. {error.detail}") from None
    config = conf.llm()
    chosen = corpus.chosen(arguments.language, arguments.only, arguments.limit)
    model = config.model if config.mode == "openai" else config.mode
    rows = list(measure(chosen, config, with_triples=arguments.triples))
    prompt = memory_update.VERSION_WITH_TRIPLES if arguments.triples else memory_update.VERSION
    result = report.Report(model, rows, arguments.prices, prompt)
    sys.stdout.write(result.text(show=arguments.show))
    if arguments.json:
        arguments.json.write_text(result.json(), encoding="utf-8")


def _arguments(given: list[str] | None, kinds: tuple[str, ...]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.extraction", description=__doc__)
    parser.add_argument("--only", nargs="+", default=kinds, choices=kinds, metavar="KIND", help=", ".join(kinds))
    parser.add_argument("--language", nargs="+", default=["en", "zh"], choices=["en", "zh"])
    parser.add_argument("--limit", type=_count, help="so many dialogues of each kind and language; all")
    parser.add_argument("--triples", action="store_true", help="also ask for triples, as for a tenant that wants them")
    parser.add_argument("--show", action="store_true", help="also tell what is wrong and what is missing")
    parser.add_argument(
        "--prices", nargs=2, type=float, metavar=("IN", "OUT"), help="of a million tokens, for the cost"
    )
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    return parser.parse_args(given)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no number of dialogues")
    return int(text)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    main()
