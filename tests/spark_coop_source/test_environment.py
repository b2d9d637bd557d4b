"""Imports run without garbage collections, and a missing package is named. `task/test_read.py` tries real ones."""

import gc
import sys

import pytest

from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.environment import needed_packages


def test_a_missing_package_is_named_with_the_interpreter_and_the_remedy() -> None:
    with pytest.raises(EnvironmentMismatchError, match="No module named 'absent_package'") as caught, needed_packages():
        __import__("absent_package")
    assert sys.executable in str(caught.value)
    assert "Remedy: install coop-kafka" in str(caught.value)


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
