"""A driver that a script ends: others may repeat its last batch, so the verdict must know of the end."""

import subprocess
import sys
from pathlib import Path

from drivers.driver import Driver


def test_its_end_is_noted_once_as_a_disturbance(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("one\ntwo\n")
    running = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    driver = Driver(tmp_path, {}, process=running)
    driver.end()
    driver.end()
    assert (driver.disturbed, running.poll() is None) == ([2], False)


def test_a_driver_that_never_ran_ends_without_a_note(tmp_path: Path) -> None:
    driver = Driver(tmp_path, {})
    driver.end()
    assert driver.disturbed == []
