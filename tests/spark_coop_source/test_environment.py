"""A missing package and a wrong interpreter are named, and imports run without garbage collections.

`task/test_read.py` tries real processes. `scripts/cluster` tries real executors.
"""

import gc
import os
import sys

import pytest

from coordinator.errors import EnvironmentMismatchError, MissingOptionError
from spark_coop_source.environment import enough_memory, errors_in_one_line, interpreter_notices, needed_packages


def test_a_missing_package_is_named_with_the_interpreter_and_the_remedy() -> None:
    with pytest.raises(EnvironmentMismatchError, match="No module named 'absent_package'") as caught, needed_packages():
        __import__("absent_package")
    assert sys.executable in str(caught.value)
    assert "Remedy: install coop-kafka" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "named"),
    [
        pytest.param(RuntimeError("can't start new thread"), True, id="no thread"),
        pytest.param(MemoryError(), True, id="no memory"),
        pytest.param(RuntimeError("another"), False, id="another error"),
    ],
)
def test_a_lack_of_memory_or_threads_is_named_with_the_option(error: Exception, named: bool) -> None:
    with pytest.raises(EnvironmentMismatchError if named else RuntimeError) as caught, enough_memory():
        raise error
    assert ("spark.executor.pyspark.memory" in str(caught.value)) == named


def of_the_users_code() -> Exception:
    error = MissingOptionError("no group")
    error.__cause__ = KeyError("orders")
    return error


@pytest.mark.parametrize(
    ("error", "users", "after"),
    [
        pytest.param(MissingOptionError("no group"), None, "1", id="an error of ours"),
        pytest.param(MissingOptionError("no group"), "", "", id="a user who wants all frames"),
        pytest.param(of_the_users_code(), None, None, id="its cause is the user's code"),
        pytest.param(ValueError("a fault"), None, None, id="another error"),
    ],
)
def test_spark_shows_an_error_of_ours_without_frames(
    monkeypatch: pytest.MonkeyPatch, error: Exception, users: str | None, after: str | None
) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", users or "")
    if users is None:
        monkeypatch.delenv("SPARK_HIDE_TRACEBACK")
    with pytest.raises(type(error)), errors_in_one_line():
        raise error
    assert os.environ.get("SPARK_HIDE_TRACEBACK") == after


def test_the_collector_pauses_during_imports() -> None:
    with needed_packages():
        with needed_packages():  # an import may import the next part of ours
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_runs_again_after_a_failed_import() -> None:
    with pytest.raises(EnvironmentMismatchError), needed_packages():
        __import__("absent_package")
    assert gc.isenabled()


def test_a_collector_that_the_user_has_switched_off_stays_off() -> None:
    gc.disable()
    try:
        with needed_packages():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("drivers", "executors", "warns"),
    [
        pytest.param(sys.executable, "./environment/bin/python", True, id="another for executors"),
        pytest.param(sys.executable, sys.executable, False, id="the same"),
        pytest.param(None, "./environment/bin/python", False, id="none for the driver"),
        pytest.param(sys.executable, None, False, id="none for executors"),
        pytest.param("/bin/sh", sys.executable, False, id="the source was registered: this is not the driver's"),
        pytest.param("an absent one", sys.executable, False, id="an absent one"),
    ],
)
def test_tasks_with_the_interpreter_of_the_driver_are_named(
    monkeypatch: pytest.MonkeyPatch, drivers: str | None, executors: str | None, warns: bool
) -> None:
    for name, value in (("PYSPARK_DRIVER_PYTHON", drivers), ("PYSPARK_PYTHON", executors)):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    found = list(interpreter_notices())
    assert len(found) == warns
    assert all(f"PYSPARK_DRIVER_PYTHON={drivers} and not with PYSPARK_PYTHON={executors}" in line for line in found)
