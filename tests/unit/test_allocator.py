import subprocess
import sys

import pytest

# Eight threads that take and give up arrays at the same time; then how many arenas glibc has.
ARENAS = """
import ctypes, os, sys, tempfile, threading
from memoryhub import allocator
from memoryhub.__main__ import main

if sys.argv[1] == "the hub":
    main(["manage.py", "version"])
together = threading.Barrier(8)

def work():
    for _ in range(50):
        together.wait()
        kept = [bytearray(60_000) for _ in range(20)]

threads = [threading.Thread(target=work) for _ in range(8)]
[one.start() for one in threads], [one.join() for one in threads]
allocator.trim()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(os.dup(file.fileno()), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    file.seek(0)
    print(file.read().count(b"<heap nr="))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the allocator of glibc")
def test_threads_of_the_hub_share_one_arena() -> None:
    assert (arenas("the hub") == 1, arenas("as it is") > 1) == (True, True)


def arenas(how: str) -> int:
    told = subprocess.run([sys.executable, "-c", ARENAS, how], check=True, capture_output=True, text=True).stdout
    return int(told.splitlines()[-1])
