"""What an export is made of: profiles, headings, files, links."""
