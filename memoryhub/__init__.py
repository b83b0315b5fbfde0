"""Environment, settings, URLs and the embedded PostgreSQL. The hub's behaviour is in `memories`."""

from importlib.metadata import PackageNotFoundError, version

# Of a checkout that is not installed nobody says the version.
try:
    VERSION = version("memory-hub")
except PackageNotFoundError:
    VERSION = "0.1.0"
