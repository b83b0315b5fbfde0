"""The REST API. A view validates its input, calls one verb of another package, and answers (contract: docs/api.md)."""
