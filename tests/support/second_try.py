"""Which failures may be tried once more: a deadline that was missed may, a promise that was broken may not.

Hooks of pytest, for `conftest`; `.ci/run` knows the exit code.
"""

from collections.abc import Generator

import pytest

from verdict import PromiseBrokenError

NO_SECOND_TRY = 10
"""The exit code of a run in which a promise was broken; 1 is that of all other failures."""

_BROKEN = ("promise", "broken")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark the report of a test that found a broken promise, so that it is known in the process that counts them."""
    report = yield
    if call.excinfo and call.excinfo.errisinstance(PromiseBrokenError):
        report.user_properties.append(_BROKEN)
    return report


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with the exit code that says so."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    failed = reporter.stats.get("failed", []) if reporter else []
    if any(tuple(one) == _BROKEN for report in failed for one in report.user_properties):
        session.exitstatus = NO_SECOND_TRY
