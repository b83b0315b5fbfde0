"""The REST API: views validate, call one verb of the rooms below, and answer (docs/api.md is its contract)."""
