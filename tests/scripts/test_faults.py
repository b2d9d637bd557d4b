"""`scripts/faults` brings about what docs/what-it-looks-like.md explains; one of its faults is brought about here."""

import re
from pathlib import Path

import pytest

from broker_jars import ROOT
from faults import FAULTS, bring_about
from topics import Kafka

PAGE = (ROOT / "docs" / "what-it-looks-like.md").read_text()


def test_each_fault_has_a_section_with_the_command_that_shows_it() -> None:
    sections = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
    assert [name.lower() for name in sections] == [fault.name.lower() for fault in FAULTS]
    for fault, text in zip(FAULTS, sections.values(), strict=True):
        command = "its log has the line" if fault.command == "log" else fault.command.replace("GROUP", "orders-to-lake")
        assert command in text, fault.name


@pytest.mark.server
def test_a_dead_driver_shows(kafka: Kafka, tmp_path: Path) -> None:
    (dead,) = (fault for fault in FAULTS if fault.name == "dead driver")
    assert " ended " in (bring_about(dead, kafka.bootstrap, tmp_path / "scene") or "")
