#!/usr/bin/env bash
# Completes this checkout's own environment, then runs a command in it:
#   environment.sh [--class-archive] COMMAND [ARGUMENT...]
# It only looks for an interpreter; environment.py beside it does the rest. PYTHON names the preferred interpreter.
set -euo pipefail
lib="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

for python in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        exec "$python" "$lib/environment.py" "$@"
    fi
done

echo "coop-kafka needs Python 3.11 or newer, and none was found ($(python3 --version 2>&1 || true))." >&2
echo "Install one with your system's packages, or name it: PYTHON=/path/to/python3.12 $0" >&2
exit 1
