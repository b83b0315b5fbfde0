"""Environment, settings, URLs and the embedded PostgreSQL. The hub's behaviour is in `memories`."""
