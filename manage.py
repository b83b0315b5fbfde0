#!/usr/bin/env python
"""Runs the hub's commands in a checkout: `python manage.py COMMAND`."""

from memoryhub.__main__ import main

if __name__ == "__main__":
    main()
