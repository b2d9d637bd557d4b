"""The command `scripts/release`: whether this checkout could be released.

Builds wheel and sdist from a clone of the last commit, and installs each in fresh virtual environments. It uploads
nothing. Standard library only; its tools are installed in a temporary folder.
"""

import argparse
import configparser
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from email import message_from_string
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "release"
TOOLS = ("build>=1.2", "twine>=6.1", "cyclonedx-bom>=7.0")
OLDEST_MINOR, NEWEST_MINOR = 11, 13
URLS = ("Documentation", "Issues", "Source")
"""What a user of the package index looks for, and setup.cfg must name."""
USED = "import coordinator, pyspark_coop_kafka, spark_coop_source"
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?", re.ASCII)


class Finding(NamedTuple):
    """One row of the table: what was looked at, whether it is right, and the remedy or a detail."""

    what: str
    right: bool
    text: str


def version_of(setup: str) -> str:
    """The version that the text of a setup.cfg declares."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(setup)
    return parser["metadata"]["version"]


def of_version(version: str, tags: Iterable[str]) -> Finding:
    """A version is a plain one of PEP 440, and no tag has it."""
    if not _VERSION.fullmatch(version):
        return Finding("version", False, f"{version!r} is not like 1.2.0 or 1.2.0rc1: change it in setup.cfg")
    if f"v{version}" in tags:
        return Finding("version", False, f"the tag v{version} exists: raise the version in setup.cfg")
    return Finding("version", True, version)


def of_changelog(changelog: str, version: str) -> Finding:
    """The changes of this version stand under its number and a date, and nothing stands under Unreleased."""
    cut = re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n+(?=\S)", changelog, re.MULTILINE)
    left = re.search(r"^## Unreleased\n+(?!## )\S", changelog, re.MULTILINE)
    if cut and not left:
        return Finding("CHANGELOG.md", True, cut[0].strip())
    return Finding("CHANGELOG.md", False, f"move what is under Unreleased to a heading `## {version} (YYYY-MM-DD)`")


def of_licence(names: Iterable[str], what: str) -> Finding:
    """The licence is in the archive of these names."""
    found = next((name for name in names if Path(name).name == "LICENSE"), None)
    return Finding(f"licence in the {what}", found is not None, found or "setup.cfg names it as license_files")


def of_urls(metadata: str) -> Finding:
    """The metadata of the wheel names the project's addresses."""
    urls = message_from_string(metadata).get_all("Project-URL") or []
    missing = [label for label in URLS if not any(url.startswith(f"{label},") for url in urls)]
    return Finding(
        "addresses", not missing, f"add {', '.join(missing)} to project_urls" if missing else ", ".join(URLS)
    )


def of_bill(bill: str, wanted: Iterable[str]) -> Finding:
    """The bill of materials is CycloneDX, and lists these packages, each with a version and a licence or none known."""
    content = json.loads(bill)
    listed = {part["name"].lower(): part.get("version") for part in content.get("components", ())}
    missing = [name for name in wanted if not listed.get(name.lower())]
    right = content.get("bomFormat") == "CycloneDX" and not missing
    return Finding("bill of materials", right, f"lacks {', '.join(missing)}" if missing else f"{len(listed)} packages")


def requirements(setup: str) -> list[str]:
    """The names of the packages that the package needs at run time."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(setup)
    lines = parser["options"]["install_requires"].splitlines()
    return [re.split(r"[\[<>=!~; ]", line.strip())[0] for line in lines if line.strip()]


def pythons() -> list[str]:
    """The commands of the supported Pythons that run on this machine."""
    names = [f"python3.{minor}" for minor in range(OLDEST_MINOR, NEWEST_MINOR + 1)]
    return [name for name in names if shutil.which(name) and not _run(name, "-c", "import venv").returncode]


def _run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def _of_command(what: str, *command: str | Path, cwd: Path | None = None) -> Finding:
    ended = _run(*command, cwd=cwd)
    lines = (ended.stdout + ended.stderr).strip().splitlines() or [""]
    return Finding(what, not ended.returncode, lines[-1] if not ended.returncode else "\n".join(lines[-15:]))


def _environment(folder: Path, python: str, packages: Sequence[str | Path]) -> tuple[Path, Finding]:
    """A fresh virtual environment with these packages; its folder of commands."""
    made = _run(python, "-m", "venv", folder)
    bin_ = folder / "bin"
    if made.returncode:
        return bin_, Finding(python, False, made.stderr.strip())
    pip = (bin_ / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    return bin_, _of_command(python, *pip, *packages)


def checks(folder: Path, output: Path) -> Iterator[Finding]:
    """Every finding, as it is made; what was built is in `output` at the end."""
    setup = (ROOT / "setup.cfg").read_text()
    version = version_of(setup)
    changed = _run("git", "status", "--porcelain", cwd=ROOT).stdout.strip()
    yield Finding("clean checkout", not changed, "commit or remove what `git status` shows" if changed else "")
    yield of_version(version, _run("git", "tag", cwd=ROOT).stdout.split())
    yield of_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    yield _of_command("clone", "git", "clone", "--quiet", ROOT, folder / "source")
    tools, made = _environment(folder / "tools", sys.executable, TOOLS)
    yield made._replace(what="tools")
    if not made.right:
        return
    built = _of_command("build", tools / "python", "-m", "build", "--outdir", output, cwd=folder / "source")
    yield built
    if built.right:
        yield from _of_archives(folder, output, tools, version, requirements(setup))


def _of_archives(folder: Path, output: Path, tools: Path, version: str, wanted: list[str]) -> Iterator[Finding]:
    (wheel,), (sdist,) = list(output.glob("*.whl")), list(output.glob("*.tar.gz"))
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith(".dist-info/METADATA"))).decode()
    yield of_licence(names, "wheel")
    yield of_urls(metadata)
    with tarfile.open(sdist) as source:
        yield of_licence(source.getnames(), "sdist")
    yield _of_command("twine check", tools / "twine", "check", "--strict", wheel, sdist)
    for python in pythons():
        for what, archive_file in (("wheel", wheel), ("sdist", sdist)):
            bin_, made = _environment(folder / f"{python}-{what}", python, [f"{archive_file}[spark,cli]"])
            used = _of_command("", bin_ / "python", "-c", USED) if made.right else made
            said = _of_command("", bin_ / "coop-kafka", "--version") if used.right else used
            yield Finding(f"{what} on {python}", said.right and version in said.text, said.text)
    yield _bill(folder, output, tools, wheel, wanted)


def _bill(folder: Path, output: Path, tools: Path, wheel: Path, wanted: list[str]) -> Finding:
    """The bill of materials of the package and what it needs at run time, written beside wheel and sdist."""
    bin_, made = _environment(folder / "plain", sys.executable, [wheel])
    file = output / f"{wheel.name.removesuffix('.whl')}.cdx.json"
    if not made.right:
        return made._replace(what="bill of materials")
    command = (tools / "cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON", "-o", file)
    written = _of_command("bill of materials", *command, bin_ / "python")
    return of_bill(file.read_text(), wanted) if written.right else written


def main() -> int:
    """0 if the checkout could be released."""
    parser = argparse.ArgumentParser(
        prog="scripts/release",
        description="Checks version, changelog, licence, addresses, wheel, sdist and bill of materials, and installs"
        " both archives on each supported Python of this machine. Uploads nothing.",
    )
    parser.add_argument("--check", action="store_true", required=True, help="check, and build into build/release")
    parser.parse_args()
    shutil.rmtree(OUTPUT, ignore_errors=True)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="coop-kafka-release-") as folder:
        for finding in checks(Path(folder), OUTPUT):
            wrong += not finding.right
            print(f"{'ok   ' if finding.right else 'WRONG'}  {finding.what}: {finding.text}", flush=True)
    print(f"{wrong} wrong; the files are in {OUTPUT}" if wrong else f"Ready: the files are in {OUTPUT}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
