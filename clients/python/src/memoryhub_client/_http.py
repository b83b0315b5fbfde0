"""The HTTP library: httpx2, the maintained continuation of httpx; httpx itself on Python 3.10, which httpx2 left."""

import sys

if sys.version_info >= (3, 11):
    import httpx2 as httpx
else:
    import httpx

__all__ = ["httpx"]
