"""The command `coop-kafka` in this process: exit code, stdout, stderr. Its JSON has the fields of docs/command.md."""

import sys

import pytest

from coordinator.tools.cli import kafka_arguments
from json_documents import check_output
from spark_coop_source import command_line


class Run:
    """Calls the command; returns exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.delenv("COOP_REDIS", raising=False)
        monkeypatch.delenv("COOP_KAFKA", raising=False)
        monkeypatch.setattr(kafka_arguments, "RETRY_INTERVAL_MS", 50)
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[object, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["coop-kafka", *arguments])
        with pytest.raises(SystemExit) as ended:
            command_line.app()
        code, (out, err) = ended.value.code, self._capsys.readouterr()
        if code == 0 and ("--json" in arguments or arguments[:1] == ("backup",)):
            check_output(arguments[0], out)
        return code, out, err
