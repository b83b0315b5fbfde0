"""The page for the person (/me/): what is remembered of them and why, and what they may do about it.

In: requests of a browser that opened a link which an application made (curation/people/page_links.py). Out: pages
without scripts. Tables: written through curation/ and privacy/ alone.
"""
