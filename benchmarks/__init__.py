"""`make bench`: the hub's figures on this machine, each beside its floor from the same run (docs/benchmarks.md)."""
