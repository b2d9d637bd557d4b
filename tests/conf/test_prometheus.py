"""conf/prometheus works in a real Prometheus: its alerts, checked by promtool."""

import shutil
from pathlib import Path

import pytest

from broker_jars import ROOT
from prometheus import NO_PROMETHEUS, PROMETHEUS, PROMTOOL, RULES, promtool

pytestmark = pytest.mark.skipif(not (PROMTOOL and PROMETHEUS), reason=NO_PROMETHEUS)


def test_promtool_accepts_the_alerts() -> None:
    checked = promtool("check", "rules", str(RULES), folder=ROOT)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_fires_in_its_fault_and_in_no_other(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(ROOT / "tests" / "conf" / "alerts_test.yml", tmp_path)
    tested = promtool("test", "rules", "alerts_test.yml", folder=tmp_path)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_a_rule_that_never_fires_fails_the_test_of_rules(tmp_path: Path) -> None:
    rules = RULES.read_text(encoding="utf-8").replace("coop_redis_up == 0", "coop_redis_up == 2")
    (tmp_path / RULES.name).write_text(rules, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "conf" / "alerts_test.yml", tmp_path)
    tested = promtool("test", "rules", "alerts_test.yml", folder=tmp_path)
    assert tested.returncode != 0
    assert "CoopKafkaRedisDown" in tested.stdout + tested.stderr
