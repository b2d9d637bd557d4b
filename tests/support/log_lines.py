"""The log lines of a test, without those of libraries: kafka-python logs too, when the machine is slow."""

import pytest

OURS = ("coordinator", "spark_coop_source")


def own_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages that our own modules logged."""
    return [record.getMessage() for record in caplog.records if record.name.split(".")[0] in OURS]
