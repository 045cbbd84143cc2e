"""Opens an address that contains a token in the user's browser, without showing the token to other users."""

import webbrowser
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

from cli.stack.layout import write_secret

SCREENS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
REDIRECT: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>zelda-rlaif</title>
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><a href="{address}">The live page</a></body></html>
"""


def open_in_browser(address: str, file: Path, environ: Mapping[str, str]) -> bool:
    """Open the address and return whether a browser was started; `file` is written for it, readable by its owner.

    The browser gets the name of the file, which leads it to the address: every user of the machine can read the
    arguments of a process, and the address contains a token.
    """
    if not any(environ.get(name) for name in SCREENS):  # a browser in the terminal could not run the page
        return False
    write_secret(file, REDIRECT.format(address=escape(address, quote=True)))
    try:
        return webbrowser.get().open(
            file.absolute().as_uri()
        )  # webbrowser.open would try browsers of the terminal, too
    except webbrowser.Error:
        return False
