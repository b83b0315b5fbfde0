"""Django's PostgreSQL backend with a cheaper look at an idle connection."""
