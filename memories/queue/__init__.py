"""The queue: one row per session says when its turns are due, another one when its window is.

In: armed rows. Out: claims with a lease and a token. It writes SessionQueue, the queue columns of WorkingMemory,
EndpointState (the circuit breaker) and ModelUse, and the leases of all other work: nightly passes and privacy cases.
"""
