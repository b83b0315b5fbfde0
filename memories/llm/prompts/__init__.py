"""One prompt, one file: its version, its answer's shape and build()."""
