"""Where log lines go in Spark's Python processes, on the driver's host and on executors.

    COOP_LOG_LEVEL    DEBUG, INFO, WARNING (the default) or ERROR, for the loggers of coop-kafka;
                            kafka-python writes only with DEBUG or INFO
    COOP_LOG_FORMAT   text (the default), or json: the form of Spark's structured logs

Lines go to stderr, each with its time, level and logger. A process whose root logger has a handler has a configuration
of its own: there, this module writes nothing.
"""

import logging
import os
import sys
from datetime import UTC, datetime
from functools import cache
from typing import TextIO

from coordinator.errors import InvalidOptionError

LEVEL, FORMAT = "COOP_LOG_LEVEL", "COOP_LOG_FORMAT"
LEVELS, FORMATS = ("DEBUG", "INFO", "WARNING", "ERROR"), ("text", "json")
OURS, LIBRARIES = ("coordinator", "spark_coop_source"), ("kafka", "redis")
_NOISY, _VERBOSE = "kafka", ("DEBUG", "INFO")
"""kafka-python writes four lines at each attempt to connect. Ours say once what waits."""

TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@cache
def configure() -> None:
    """Configure the loggers of this process, once. Raises `InvalidOptionError` for a variable that cannot be used."""
    level, form = _chosen(LEVEL, LEVELS), _chosen(FORMAT, FORMATS)
    handler = _Stderr()
    handler.setFormatter(_json() if form == "json" else _Utc(TEXT))
    for name in (*OURS, *LIBRARIES):
        logging.getLogger(name).addHandler(handler)
    if level not in _VERBOSE and not logging.getLogger().handlers:
        logging.getLogger(_NOISY).setLevel(logging.CRITICAL)
    for name in OURS if level else ():  # else as the root logger has it: WARNING, if nobody has set it
        logging.getLogger(name).setLevel(level)


class _Stderr(logging.StreamHandler[TextIO]):
    """Writes to the stderr of the moment, unless the process has a configuration of its own."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


class _Utc(logging.Formatter):
    """Times as in Spark's structured logs: `2026-01-31T12:00:00.000Z`."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        at = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
        return f"{at.isoformat(timespec='milliseconds')}Z"


def _json() -> logging.Formatter:
    from pyspark.logger.logger import JSONFormatter  # noqa: PLC0415 - most processes do without

    class _Json(_Utc, JSONFormatter):
        """The form of Spark's own structured logs, `SPARK_LOG_SCHEMA`."""

    return _Json()


def _chosen(variable: str, allowed: tuple[str, ...]) -> str:
    """The value of a variable of the environment; empty if it is not set."""
    given = os.environ.get(variable, "")
    same = [value for value in allowed if value.lower() == given.lower()]
    if given and not same:
        raise InvalidOptionError(
            f"{variable} in the environment is {given!r}, none of {', '.join(allowed)}",
            f"set {variable} to one of these",
        )
    return same[0] if same else ""
