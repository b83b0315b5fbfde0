"""Attachments of turns: a worker reads each file in a process of its own, and stores its text as passages.

In: files that wait (capture/ingest.py stores them with their turns). Out: Attachment, Passage; for pictures ModelUse.
"""
