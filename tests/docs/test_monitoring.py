"""docs/monitoring.md has every metric of the exporter, and docs/troubleshooting.md a section for each alert."""

import re

from broker_jars import ROOT
from coordinator.tools.exporter.metrics import METRICS

PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
HELP = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
ALERTS = (ROOT / "conf" / "prometheus" / "alerts.yml").read_text(encoding="utf-8")
ALERTS_TEST = (ROOT / "tests" / "conf" / "alerts_test.yml").read_text(encoding="utf-8")
NAMES = re.findall(r"- alert: (\w+)", ALERTS)
NAME_OF_METRIC = re.compile(r"\bcoop_[a-z_]+\b")


def row(name: str, labels: tuple[str, ...], meaning: str) -> str:
    return f"| `{name}` | {', '.join(f'`{each}`' for each in labels) or '-'} | {meaning} |"


def test_the_table_has_exactly_the_metrics_of_the_exporter() -> None:
    shown = [line for line in PAGE.splitlines() if line.startswith("| `coop_")]
    assert shown == [row(m.name, m.labels, m.meaning) for m in METRICS]
    assert len({m.name for m in METRICS}) == len(METRICS)


def test_every_alert_has_a_runbook() -> None:
    linked = re.findall(r"runbook_url: docs/troubleshooting\.md#([a-z-]+)$", ALERTS, re.MULTILINE)
    sections = re.findall(r"^### ([^\n]+)\n\n`(CoopKafka\w+)`: ", HELP, re.MULTILINE)
    found = {alert: re.sub(r"\W+", "-", title.lower()) for title, alert in sections}
    assert found == dict(zip(NAMES, linked, strict=True))
    assert sorted(re.findall(r"CoopKafka\w+", HELP)) == sorted(NAMES), "each once"


def test_every_alert_fires_in_a_test_of_promtool() -> None:
    assert [name for name in NAMES if f'alertname="{name}"' not in ALERTS_TEST] == []


def test_alerts_and_their_tests_use_metrics_of_the_exporter() -> None:
    used = set(NAME_OF_METRIC.findall(ALERTS)) | set(NAME_OF_METRIC.findall(ALERTS_TEST))
    assert used - {metric.name for metric in METRICS} == set()
