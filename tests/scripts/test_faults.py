"""`scripts/faults` brings about what docs/troubleshooting.md explains; one of its faults is brought about here."""

import re
from pathlib import Path

import pytest

import fault_report
from broker_jars import ROOT
from faults import FAULTS, Named, bring_about
from topics import Kafka

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
SECTIONS = dict(re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_each_fault_has_a_section_with_the_command_that_shows_it() -> None:
    sections = {name.lower(): text for name, text in SECTIONS.items()}
    for fault in FAULTS:
        text = sections[fault.name.lower()]
        command = "its log has the line" if fault.command == "log" else fault.command.replace("GROUP", "orders-to-lake")
        assert command in text, fault.name


def test_each_section_is_of_a_fault_or_of_an_alert() -> None:
    names = {fault.name.lower() for fault in FAULTS}
    assert [name for name, text in SECTIONS.items() if name.lower() not in names and "\n`CoopKafka" not in text] == []


def test_the_page_has_a_row_for_each_fault_of_the_report() -> None:
    proof = (ROOT / "docs" / "proof.md").read_text()
    _, _, report = proof.partition("## Each fault, with its verdict")
    rows = re.findall(r"^\| ([^|]+?) \| [\d,]+ \| \d+ \| \d+ \|$", report, re.MULTILINE)
    assert {*rows} == {*fault_report.FAULTS}


@pytest.mark.long
@pytest.mark.server
def test_a_dead_driver_shows(kafka: Kafka, tmp_path: Path) -> None:
    (dead,) = (fault for fault in FAULTS if fault.name == "dead driver")
    named = bring_about(dead, kafka.bootstrap, tmp_path / "scene")
    assert isinstance(named, Named), named
    assert " ended " in named.lines
    assert named.seconds > 0
