"""The operators' side: pages read the tables and call curation's verbs; they never write by themselves.

Nothing is imported here: this package is loaded in order to make the site, so pages that registered themselves
meanwhile would find none. HubAdminConfig registers them once the site stands.
"""
