#!/usr/bin/env bash
# Makes the virtual environment: setup.sh PYTHON VENV EXTRAS, e.g. setup.sh python3.11 .venv all,dev
set -euo pipefail
python=$1 venv=$2 extras=$3

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null; then
  echo "setup: '$python' is not Python 3.11 or 3.12; install one, or name it: make setup PYTHON=/path/to/python3.11" >&2
  exit 2
fi
if ! "$python" -m venv --help >/dev/null 2>&1; then
  echo "setup: '$python' has no venv module; on Debian: apt-get install python3-venv" >&2
  exit 2
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
echo "setup: installing into $venv (a few minutes the first time)"
pip=("$venv/bin/pip" --quiet --disable-pip-version-check)
# torch by itself and first: its CPU wheel satisfies every later requirement, so no CUDA packages follow.
"${pip[@]}" install -c constraints.txt "$(grep '^torch==' constraints.txt)"
"${pip[@]}" install -c constraints.txt -e ".[$extras]"
