"""Packages that a single command needs: pip installs each into a folder of its own in `.cache`, once."""

import subprocess
import sys
from pathlib import Path

from broker_jars import CACHE


def folder_of(requirement: str) -> Path | None:
    """The folder of a requirement such as `atheris==3.0.0`, to be found on the path; None if pip cannot install it."""
    folder = CACHE / f"{requirement}-{sys.version_info.major}.{sys.version_info.minor}"
    if not folder.is_dir():
        print(f"Installing {requirement} into .cache ...", file=sys.stderr)
        quietly = ("--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(folder))
        if subprocess.run([sys.executable, "-m", "pip", "install", *quietly, requirement], check=False).returncode:
            return None
    return folder
