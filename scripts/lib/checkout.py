"""What this checkout is."""

import subprocess

from broker_jars import ROOT


def commit() -> str:
    """Its commit, for the heads of reports; of changed files it says nothing."""
    command = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
