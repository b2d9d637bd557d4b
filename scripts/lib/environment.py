"""Runs a command in this checkout's own environment, and first makes the parts of it that are missing.

The environment is `.venv` (the package as a wheel, with every extra) and `.cache` (a Kafka broker, Spark's own Kafka
source). `--class-archive` before the command adds an archive of Spark's classes, for commands that start many drivers.
Standard library only, because nothing else is installed yet. Runs that share a checkout hold a shared lock while they
live. A change of the environment needs the lock exclusively, so no run sees a half-made environment.
"""

import configparser
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

sys.path.append(str(Path(__file__).resolve().parents[2]))  # our packages are not installed yet
import class_archive
from broker_jars import BROKER, CACHE, CONNECTOR, ROOT
from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers.java import java_version

VENV = ROOT / ".venv"
CLASSES = VENV / "classes.jsa"
JARS = (BROKER, CONNECTOR)
EXTRAS = "spark,cli,exporter,metrics,ui,testing,docs,demo,test,lint"
SOURCES = ("coordinator", "spark_coop_source")
SUFFIXES = (".py", ".lua", ".html", ".js", ".css", ".typed", ".properties", ".xml")
INSIDE = "COOP_ENVIRONMENT"
WITH_ARCHIVE = "--class-archive"
_NOT_INHERITED = ("PYTHONPATH", "PYTHONHOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_DRIVER_PYTHON_OPTS")


def _digest(texts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _dependencies() -> str:
    """The facts that installed packages depend on: our requirements, the interpreter, the checkout's folder."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    wishes = [f"{name}: {dict(setup[name])}" for name in setup.sections() if name.startswith("options")]
    return _digest(text.encode() for text in [sys.version, str(ROOT), EXTRAS, *wishes])


def _sources() -> str:
    """The sources of the installed wheel."""
    files = [ROOT / "setup.cfg", ROOT / "pyproject.toml"]
    files += sorted(path for name in SOURCES for path in (ROOT / name).rglob("*") if path.suffix in SUFFIXES)
    return _digest(part for path in files for part in (str(path.relative_to(ROOT)).encode(), path.read_bytes()))


def _stamped(name: str, digest: str) -> bool:
    stamp = VENV / name
    return stamp.is_file() and stamp.read_text() == digest


def _pip(*arguments: str) -> None:
    quietly = ("--progress-bar=off", "--disable-pip-version-check")
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", *quietly]
    with subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            if line.lstrip().startswith("Downloading "):  # the name of a package, and its size
                print(line.rstrip(), file=sys.stderr, flush=True)
    if pip.returncode:
        sys.exit("pip could not install the packages; its message is above. A second try continues where it stopped.")


def _make_venv() -> None:
    config = VENV / "pyvenv.cfg"
    same = config.is_file() and f"version = {platform.python_version()}" in config.read_text().splitlines()
    command = [sys.executable, "-m", "venv", *([] if same else ["--clear"]), str(VENV)]
    if subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode:
        sys.exit("Python could not make a virtual environment (Debian: install the package python3-venv).")


def _install(*arguments: str) -> None:
    """Install the package from a build folder without files of an older build."""
    for leftover in (ROOT / "build", ROOT / "coop_kafka.egg-info"):
        shutil.rmtree(leftover, ignore_errors=True)
    _pip(*arguments)
    for leftover in (ROOT / "build", ROOT / "coop_kafka.egg-info"):
        shutil.rmtree(leftover, ignore_errors=True)
    (VENV / "sources").write_text(_sources())


def _spark_home() -> Path:
    return next(VENV.glob("lib/python3*/site-packages/pyspark"), VENV / "pyspark-is-missing")


def _archives() -> list[Path]:
    """Spark's archives of pyspark and py4j, which its Pythons would import before the installed packages.

    They have no bytecode. Each Python process of Spark would compile them again, which takes 0.7 s of CPU.
    """
    return list(_spark_home().glob("python/lib/*.zip"))


def _ready() -> bool:
    return (
        _stamped("dependencies", _dependencies())
        and _stamped("sources", _sources())
        and _spark_home().is_dir()
        and not _archives()
        and all(each.present() for each in JARS)
    )


def _set_up() -> None:
    if not _stamped("dependencies", _dependencies()) or not _spark_home().is_dir():
        print("Installing Python packages into .venv (some minutes the first time) ...", file=sys.stderr)
        _make_venv()
        _pip("setuptools>=77", "wheel")
        _install(f"{ROOT}[{EXTRAS}]")
        (VENV / "dependencies").write_text(_dependencies())
        (VENV / "classes").unlink(missing_ok=True)
    for archive in _archives():
        archive.unlink()
    if not _stamped("sources", _sources()):
        _install("--no-deps", "--no-build-isolation", "--force-reinstall", str(ROOT))
    for each in JARS:
        if not each.present():
            print(f"Fetching {each.what} into .cache (half a minute) ...", file=sys.stderr)
            each.fetch(_spark_home())


def _archive_classes(java: str) -> None:
    print("Making an archive of Spark's classes in .venv (half a minute) ...", file=sys.stderr)
    if not class_archive.make(CLASSES, variables()):
        print("This Java makes none: each Spark starts with twice the work.", file=sys.stderr)
    (VENV / "classes").write_text(java)


def _lock_exclusively(lock: IO[str]) -> None:
    fcntl.flock(lock, fcntl.LOCK_UN)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Waiting for another run in this checkout, to bring .venv up to date ...", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)


def prepare(*, archive: bool) -> None:
    """Make the missing parts, and hold the shared lock for the life of this process."""
    java = java_version()
    CACHE.mkdir(exist_ok=True)
    lock = (CACHE / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_SH)

    def archived() -> bool:
        return not archive or _stamped("classes", java)

    if not (_ready() and archived()):
        _lock_exclusively(lock)
        if not _ready():
            _set_up()
        if not archived():
            _archive_classes(java)
        fcntl.flock(lock, fcntl.LOCK_SH)
    os.set_inheritable(os.dup(lock.fileno()), True)


def variables() -> dict[str, str]:
    """The environment variables of a command: our interpreter and our Spark, whatever the user's settings."""
    python = str(VENV / "bin" / "python")
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return kept | {
        INSIDE: str(ROOT),
        "VIRTUAL_ENV": str(VENV),
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_HOME": str(_spark_home()),
        "SPARK_SUBMIT_OPTS": class_archive.use(CLASSES, kept.get("SPARK_SUBMIT_OPTS", "")),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def main(command: list[str]) -> None:
    """Replace this process by `command`; a run inside a run uses the environment of the outer one."""
    archive = command[:1] == [WITH_ARCHIVE]
    command = command[archive:] or ["true"]
    if os.environ.get(INSIDE) != str(ROOT):
        try:
            prepare(archive=archive)
        except EnvironmentMismatchError as error:
            sys.exit(str(error))
        except (OSError, RuntimeError) as error:
            sys.exit(f"The environment could not be made: {error}")
        except KeyboardInterrupt:
            sys.exit(130)
    environment = variables()
    program = shutil.which(command[0], path=environment["PATH"])
    if program is None:
        print(f"{command[0]}: not found", file=sys.stderr)
        sys.exit(127)
    os.execve(program, command, environment)


if __name__ == "__main__":
    main(sys.argv[1:])
