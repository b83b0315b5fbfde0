"""The operators' pages. They read the tables and call the verbs of `curation`; they never write by themselves.

`site/site.py` lists all pages, and HubAdminConfig registers them. This module imports nothing, since models are not
loaded yet when Django imports it.
"""
