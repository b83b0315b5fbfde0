"""The web server: gunicorn's parent, one loop per process for all connections, a few threads for Django."""
