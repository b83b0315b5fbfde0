"""Capture: POST /turns ends here.

In: messages of a session. Out: Turn rows with gapless numbers, end users and sessions created where missing, and an
armed queue row; all in one transaction.
"""
