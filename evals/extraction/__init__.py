"""Extraction measured on dialogues written for it: `make eval-extraction` (docs/extraction-eval.md)."""
