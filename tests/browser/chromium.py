"""The chromium of the browser tests and of the screenshots, and the sizes that pages are looked at in."""

import os
import shutil

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page asks for elsewhere is not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]
DESK = (1440, 900)
PHONE = (390, 844)


def chromium_path() -> str | None:
    """CHROMIUM, else Debian's on the path, else None: Playwright's own."""
    named = os.environ.get("CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("chromium-browser")
