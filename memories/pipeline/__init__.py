"""One stage, one file, one public verb: ingest, debounce, extraction, gate, reconcile, consolidation, context."""
