"""`python -m deploy.generate` writes every generated file; with `--check` it only lists stale files."""

import sys
from pathlib import Path

from deploy.generate.files import generated

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    """Write the files that differ; with `--check`, list them and fail."""
    check = "--check" in arguments
    stale = 0
    for path, text in generated(ROOT):
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        sys.stdout.write(f"{'stale' if check else 'wrote'} {path.relative_to(ROOT)}\n")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
