"""The command `scripts/lowest-versions`: runs the tests that need no server on the lower bounds of setup.cfg.

Only the packages that setup.cfg names are at their lowest version. Their own requirements are at the newest version
that they allow, as for a user of today. Makes a virtual environment in a temporary folder, and removes it. Standard
library only.
"""

import argparse
import configparser
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

from checkout import ROOT, sources

EXTRAS = ("spark", "cli", "exporter", "metrics", "ui", "testing", "docs", "demo", "test")
"""All extras but `lint`: its tools are not part of the product."""
_SERVERS = ("COOP_KAFKA", "COOP_REDIS")
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?P<extras>\[[\w,]+\])?(?P<bounds>[^;]*)(?P<marker>;.*)?", re.ASCII)


def lowest(requirement: str) -> str:
    """A requirement with its lower bound as the only version; raises `ValueError` for one without a bound."""
    parts = _REQUIREMENT.fullmatch(requirement.strip())
    bound = parts and re.search(r"[>=]=\s*([\w.]+)", parts["bounds"])
    if not parts or not bound:
        raise ValueError(f"{requirement!r} in setup.cfg names no lower bound")
    return f"{parts['name']}{parts['extras'] or ''}=={bound[1]}{parts['marker'] or ''}"


def requirements() -> list[str]:
    """The requirements of the package and its extras, each at its lowest version, by name."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    texts = [setup["options"]["install_requires"], *(setup["options.extras_require"][extra] for extra in EXTRAS)]
    return sorted({lowest(line) for text in texts for line in text.splitlines() if line.strip()})


def _run(command: Sequence[str | Path], **more: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in (*_SERVERS, "PYTHONPATH")}
    return subprocess.run(command, cwd=ROOT, env=environment | more, check=False).returncode


def _passes(wanted: Iterable[str], tests: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory(prefix="coop-kafka-lowest-") as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        pip = (python, "-m", "pip", "--disable-pip-version-check")
        if _run([*pip, "install", "--quiet", *wanted]):
            print("pip could not install these versions; its message is above.", file=sys.stderr)
            return 2
        if _run([*pip, "install", "--quiet", "--no-deps", sources(Path(folder, "copy"))]):
            return 2
        _run([*pip, "list", "--format=freeze"])
        quiet = ("-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning")  # old packages warn of newer ones
        return _run([python, "-m", "pytest", "-q", "-m", "not server", *quiet, *tests], PYTHONDONTWRITEBYTECODE="1")


def main() -> int:
    """0 if all tests pass, 1 if one fails, 2 if the versions cannot be installed."""
    parser = argparse.ArgumentParser(
        prog="scripts/lowest-versions",
        description="Installs the lowest versions that setup.cfg allows, in a temporary folder, and runs the tests that"
        " need no server. Further arguments go to pytest.",
    )
    parser.add_argument("--list", action="store_true", help="only print the versions")
    given, tests = parser.parse_known_args()
    wanted = requirements()
    print("\n".join(wanted), flush=True)
    return 0 if given.list else min(_passes(wanted, tests), 2)


if __name__ == "__main__":
    sys.exit(main())
