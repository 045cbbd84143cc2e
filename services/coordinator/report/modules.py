"""Joins the live page's modules into one script, because a file without a server cannot import others.

It understands what the page uses: `import { a, b } from "./x.js";` on one line or several, and exported functions and
constants.
"""

import posixpath
import re
from collections.abc import Callable
from typing import Final

IMPORT: Final = re.compile(r'^import \{([^}]+)\} from "([^"]+)";$', re.MULTILINE)
EXPORT: Final = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)


def one_script(read: Callable[[str], str], entry: str) -> str:
    """The module at the path `entry` and all that it imports, as one script; `read` returns the text of a path."""
    order: list[str] = []
    _visit(read, entry, order)
    bodies = [_as_function(path, read(path)) for path in order]
    return '"use strict";\nconst modules = {};\n' + "\n".join(bodies)


def _visit(read: Callable[[str], str], path: str, order: list[str]) -> None:
    """Append a module after those that it imports."""
    for _, name in IMPORT.findall(read(path)):
        found = _resolved(path, name)
        if found not in order:
            _visit(read, found, order)
    order.append(path)


def _as_function(path: str, text: str) -> str:
    exported = ", ".join(name for _, name in EXPORT.findall(text))
    body = IMPORT.sub(lambda match: f'const {{{match[1]}}} = modules["{_resolved(path, match[2])}"];', text)
    body = EXPORT.sub(r"\1 \2", body)
    return f'modules["{path}"] = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();'


def _resolved(path: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
