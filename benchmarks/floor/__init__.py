"""The floor: a bare Django REST framework project on the hub's gunicorn and database, one row in, twenty rows out."""
