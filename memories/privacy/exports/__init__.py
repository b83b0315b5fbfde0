"""What an export is made of: `profiles.py` and `omissions.py` say what goes into it, `rows.py` reads it, `archive.py`
writes it, and `downloads.py` gives it out."""
