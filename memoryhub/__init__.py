"""Environment, settings, URLs and the embedded PostgreSQL. The hub's behaviour is in `memories`."""

# As in pyproject.toml, which is no part of an image.
VERSION = "0.1.0"
