#!/bin/bash
# glibc 2.36 (Debian 12), numpy==2.4.6, Python 3.11.
# mallopt(M_ARENA_MAX, 1) promises one arena. A server that loads its application, forks, and asks for it in each
# worker (gunicorn's post_fork with preload_app) does not get it.
# Seen: arenas that threads of the parent once had are on a list of free ones, also when those threads ended long ago.
# fork() copies the list, and puts on it the arenas of threads that the child does not have. A new thread takes from that
# list first; the limit is only asked when an arena would be made. mallopt() returns 1, success, in each case.
# So the workers' threads use as many arenas as threads of the parent had at once, and each keeps what its largest
# request needed. MALLOC_ARENA_MAX=1 in the environment, or the call before the parent's first thread, has one.
# Remedy: ask where the process begins, before anything that starts a thread is imported.
# Output seen (sizes differ a little; the eight arenas of eight threads of the parent, and the first):
#   asked in the fork: 9 arenas, MB in those beside the first: 62
#   asked before the parent's threads: 1 arena
#   in the environment: 1 arena
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv --without-pip "$folder/venv"
python3 -m pip --python "$folder/venv/bin/python" install --quiet --only-binary :all: numpy==2.4.6 2>/dev/null
cd "$folder"
cat > run.py <<'P'
import ctypes
import os
import platform
import re
import sys
import tempfile
import threading

import numpy as np

M_ARENA_MAX, THREADS = -8, 8
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
assert platform.libc_ver()[0] == "glibc"

def threads():
    """Eight that hold an array each, of a size that comes from an arena, at the same time; then they end."""
    together = threading.Barrier(THREADS)
    def work():
        for _ in range(20):
            together.wait()
            kept = [np.ones(12_000) for _ in range(40)]
            together.wait()
    each = [threading.Thread(target=work) for _ in range(THREADS)]
    [one.start() for one in each], [one.join() for one in each]

def arenas():
    """Bytes that each arena has of the system."""
    with tempfile.TemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        file.seek(0)
        heaps = file.read().decode().split("<heap nr=")[1:]
    return [int(re.search(r'<system type="max" size="(\d+)"', one)[1]) for one in heaps]

when = sys.argv[1]
if when == "before":
    assert libc.mallopt(M_ARENA_MAX, 1) == 1
threads()
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
if when == "after":
    assert libc.mallopt(M_ARENA_MAX, 1) == 1
threads()
print(len(arenas()), round(sum(arenas()[1:]) / 1e6), flush=True)
os._exit(0)
P
read -r many size <<< "$(venv/bin/python run.py after)"
read -r one _ <<< "$(venv/bin/python run.py before)"
read -r named _ <<< "$(MALLOC_ARENA_MAX=1 venv/bin/python run.py environment)"
echo "asked in the fork: $many arenas, MB in those beside the first: $size"
echo "asked before the parent's threads: $one arena"
echo "in the environment: $named arena"
test "$many" -ge 4 -a "$size" -ge 10 -a "$one" -eq 1 -a "$named" -eq 1
