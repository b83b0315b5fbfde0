"""`make soak`: one hub under everything at once for hours, faults at random, judged by the clients' own logs.

`stage` has its disk, clock and keys, `people`, `readers` and `staff` use it, `model` answers it, `faults` hurts it.
Each of them writes a `journal`. `ending` notes what the hub holds once nothing is left to do. `judge` and `rates` read
journals alone. `running` is the order of all this.
"""
