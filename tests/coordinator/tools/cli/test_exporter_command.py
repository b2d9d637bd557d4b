"""The verb `exporter`: its arguments and its errors. `exporter/test_server.py` tests its answers."""

import signal
import socket
import sys
from contextlib import closing

import pytest

from command_runs import Run
from exporters import exporter

PLACE = ("--redis", "redis://127.0.0.1:1", "--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize(
    "listen", ["9308", "host", "host:", ":65536", ":-1", "a b:1", "::1:9308", "[::1]", "http://h:1", ":9\x1b[31m"]
)
def test_an_address_that_is_none_is_refused(run: Run, listen: str) -> None:
    code, out, err = run("exporter", *PLACE, "--listen", listen)
    assert (code, out) == (2, "")
    assert err.startswith("WRONG_USAGE: ")
    assert "[HOST]:PORT" in err
    assert err[:-1].isprintable()


def test_a_port_that_is_taken_is_named(run: Run) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = run("exporter", *PLACE, "--listen", listen)
    assert (code, out) == (2, "")
    assert err.startswith(f"INVALID_OPTION: --listen {listen} cannot be used (Address already in use). Remedy: ")


def test_an_address_of_another_host_is_named(run: Run) -> None:
    code, _, err = run("exporter", *PLACE, "--listen", "no.such.host.invalid:9308")
    assert code == 2
    assert err.startswith("INVALID_OPTION: --listen no.such.host.invalid:9308 cannot be used (")


def test_the_exporter_needs_both_servers(run: Run) -> None:
    assert "--bootstrap-server" in run("exporter", *PLACE[:2])[2]
    assert "--redis" in run("exporter", *PLACE[2:])[2]


@pytest.mark.server
def test_a_password_is_in_no_line() -> None:
    with exporter("redis://:hunter2@127.0.0.1:1", "127.0.0.1:1") as running:
        assert "hunter2" not in running.scrape().text
        code, err = running.end()
    assert (code, "hunter2" in err) == (0, False)
    assert err.startswith("warning: Redis: REDIS_")


def test_without_the_extra_the_error_names_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [
        name for name in sys.modules if name.startswith(("prometheus_client", "coordinator.tools.exporter"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    code, out, err = run("exporter", *PLACE)
    assert (code, out) == (1, "")
    assert 'pip install "coop-kafka[cli,exporter]"' in err


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_polite_stop_end_it_with_0(number: signal.Signals) -> None:
    with exporter("redis://127.0.0.1:1", "127.0.0.1:1") as running:
        assert running.end(number) == (0, "")
