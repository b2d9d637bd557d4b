"""Log lines of a process: their form, their level, and a process that has a configuration of its own."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import logging
from spark_coop_source import logs
logs.configure()
logs.configure()
logging.getLogger("coordinator.batches").info("%d records", 3, extra={"context": {"rows": "3"}})
logging.getLogger("spark_coop_source.fetch.fetch").warning("skipped")
logging.getLogger("kafka.conn").warning("away")
logging.getLogger("kafka.conn").info("connected")
logging.getLogger("of.another").warning("theirs")
"""
FAILING = (
    PROGRAM
    + """
try:
    {}["key"]
except KeyError:
    logging.getLogger("spark_coop_source.driver").exception("failed")
"""
)


def logged(program: str, **variables: str) -> list[str]:
    """The lines of stderr of a process with these variables; it must write nothing on stdout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COOP_LOG")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment | variables, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return done.stderr.splitlines()


def test_a_line_has_its_time_its_level_and_its_logger_and_comes_once() -> None:
    _, skipped, away, theirs = logged(PROGRAM, COOP_LOG_LEVEL="INFO")
    assert theirs == "theirs", "other loggers are as the process has them"
    assert skipped[24:] == " WARNING spark_coop_source.fetch.fetch: skipped"
    assert away[24:] == " WARNING kafka.conn: away"
    assert (skipped[10], skipped[23]) == ("T", "Z")


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        pytest.param("INFO", ["coordinator.batches", "spark_coop_source.fetch.fetch", "kafka.conn"], id="with batches"),
        pytest.param("info", ["coordinator.batches", "spark_coop_source.fetch.fetch", "kafka.conn"], id="any case"),
        pytest.param("WARNING", ["spark_coop_source.fetch.fetch"], id="warnings"),
        pytest.param("ERROR", [], id="errors"),
        pytest.param("", ["spark_coop_source.fetch.fetch"], id="empty, as if it were not set"),
    ],
)
def test_the_level_is_that_of_the_environment(level: str, lines: list[str]) -> None:
    *ours, _ = logged(PROGRAM, COOP_LOG_LEVEL=level)
    assert [line.split()[2].rstrip(":") for line in ours] == lines


def test_json_is_in_the_form_of_sparks_structured_logs() -> None:
    lines = logged(FAILING, COOP_LOG_LEVEL="INFO", COOP_LOG_FORMAT="json")
    batch, *_, failed = (json.loads(line) for line in lines if line != "theirs")
    assert batch.pop("ts")[23:] == "Z"
    expected = {"level": "INFO", "logger": "coordinator.batches", "msg": "3 records", "context": {"rows": "3"}}
    assert batch == expected
    assert (failed["level"], failed["exception"]["class"], failed["exception"]["msg"]) == ("ERROR", "KeyError", "'key'")


def test_a_process_with_a_configuration_of_its_own_keeps_it() -> None:
    own = "import logging\nlogging.basicConfig(format='OWN %(message)s')\n"
    assert logged(own + PROGRAM) == ["OWN skipped", "OWN away", "OWN theirs"]
    assert logged(PROGRAM + own + "logging.getLogger('redis').warning('later')")[-1] == "OWN later"


@pytest.mark.parametrize(("variable", "allowed"), [("COOP_LOG_LEVEL", "DEBUG, INFO"), ("COOP_LOG_FORMAT", "text")])
def test_a_value_that_there_is_not_is_named_with_those_that_there_are(variable: str, allowed: str) -> None:
    environment = os.environ | {variable: "loud"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert f"INVALID_OPTION: {variable} in the environment is 'loud', none of {allowed}" in done.stderr
