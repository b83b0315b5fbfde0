"""The processes of the hub, and what keeps django-q2 working.

`manage.py up` runs web and worker under one parent (`supervision.py`). The worker runs a django-q2 cluster, and an
embedder beside it (`embedder.py`). django-q2 is started, fed and watched here because it has three gaps:

- Its scheduler looks every 30 seconds. The broker (`broker.py`) sweeps the due sessions about once a second and wakes
  workers for them. The rows of the sessions remain the queue.
- It hangs for good when a process is killed while that process holds the lock of an internal queue, and then it still
  looks alive. The roll call (`roll_call.py`) is a task that goes through the pool. The cluster writes its heartbeat
  (`pulse.py`) only while the pool answers, and the watchdog (`watchdog.py`) reports a cluster without a heartbeat.
- Its own stop waits forever on such a lock. `cluster.py` kills the whole process group and starts another one.
"""
