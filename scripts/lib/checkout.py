"""What this checkout is. Standard library only: `lowest_versions` needs it where nothing is installed."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """Its commit, for the heads of reports; of changed files it says nothing."""
    command = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def sources(folder: Path) -> Path:
    """A new folder with what the wheel is made of, where pip may leave files."""
    folder.mkdir()
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("coordinator", "spark_coop_source"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder
