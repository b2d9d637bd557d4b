"""Processes whose clock can be set: they take their time from libfaketime. A JVM does not start with it."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

import extra_packages

FAKETIME, CLOCK = "libfaketime==3.0.1", "clock"


def environment() -> Mapping[str, str]:
    """The environment of a process that takes its time from the file `clock` of its folder; without one, it is right.

    Empty if the library for this is not to be had.
    """
    if sys.platform != "linux" or (package := extra_packages.folder_of(FAKETIME)) is None:
        return {}
    (library,) = package.rglob("libfaketime.so.1")
    settings = {"TIMESTAMP_FILE": CLOCK, "CACHE_DURATION": "1", "DONT_FAKE_MONOTONIC": "1"}
    return {"LD_PRELOAD": str(library), **{f"FAKETIME_{name}": value for name, value in settings.items()}}


def forget() -> None:
    """Remove what the library keeps in shared memory for processes that have ended: it does not if they are killed."""
    for file in Path("/dev/shm").glob("*faketime_*_*"):  # noqa: S108 - its place
        with suppress(ValueError, OSError):  # another one's
            if not psutil.pid_exists(int(file.name.rpartition("_")[2])):
                file.unlink()
