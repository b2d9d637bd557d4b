"""The verb `ui`: its arguments, its errors, and how it ends. `page/test_application.py` tests its answers."""

import signal
import socket
import sys
from contextlib import closing

import pytest

from command_runs import Run
from coordinator.tools.cli.ui_command import is_loopback
from sites import site

NOWHERE = ("--redis", "redis://127.0.0.1:1")


@pytest.mark.parametrize("listen", [":8080", "0.0.0.0:8080", "[::]:8080", "192.0.2.1:80", "example.com:80"])
def test_beyond_this_host_it_wants_to_be_told_so(run: Run, listen: str) -> None:
    code, out, err = run("ui", *NOWHERE, "--listen", listen)
    assert (code, out) == (2, "")
    assert err.startswith(
        f"INVALID_OPTION: --listen {listen} is reachable from other hosts, and the page has no password"
    )
    assert "--allow-remote" in err


@pytest.mark.parametrize(
    ("host", "found"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("h", False)],
)
def test_the_loopback(host: str, found: bool) -> None:
    assert is_loopback(host) is found


def test_an_address_that_is_none_is_refused(run: Run) -> None:
    code, _, err = run("ui", *NOWHERE, "--listen", "8080")
    assert (code, "[HOST]:PORT" in err) == (2, True)


def test_a_redis_that_does_not_answer_ends_it_at_once(run: Run) -> None:
    code, out, err = run("ui", *NOWHERE, "--listen", "127.0.0.1:0")
    assert (code, out) == (1, "")
    assert err.startswith("REDIS_UNAVAILABLE: ")


@pytest.mark.server
def test_a_port_that_is_taken_is_named(run: Run, redis_url: str) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out, err = run("ui", "--redis", redis_url, "--listen", listen)
    assert (code, out) == (2, "")
    assert err.startswith(f"INVALID_OPTION: --listen {listen} cannot be used (Address already in use). Remedy: ")


def test_without_the_extra_the_error_names_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("uvicorn", "coordinator.tools.page"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, out, err = run("ui", *NOWHERE)
    assert (code, out) == (1, "")
    assert 'pip install "coop-kafka[cli,ui]"' in err


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_polite_stop_end_it_with_0(redis_url: str, number: signal.Signals) -> None:
    with site(redis_url) as running:
        assert running.end(number) == (0, "")


@pytest.mark.server
def test_beyond_this_host_it_says_what_it_shows(redis_url: str) -> None:
    with site(redis_url, "--listen", "0.0.0.0:0", "--allow-remote") as running:
        code, err = running.end()
    assert code == 0
    assert err.startswith("warning: everybody who reaches this address sees names of groups, topics, members and hosts")
