"""conf/grafana in a real Prometheus: every expression of the dashboard has data."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker_jars import ROOT
from exporters import exporter
from own_valkey import OwnValkey
from prometheus import NO_PROMETHEUS, PROMETHEUS, PROMTOOL, prometheus
from streams import keyed
from topics import Kafka
from watched_groups import live

BOARD: dict[str, Any] = json.loads((ROOT / "conf" / "grafana" / "coop-kafka.json").read_text(encoding="utf-8"))
EXPRESSIONS = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
HOSTILE = 'g"} \\evil\n<b>\x1b[31m\u202e{{ $labels }}'
VARIABLES = {f"${each['name']}": each.get("allValue", "") for each in BOARD["templating"]["list"]}
VARIABLES["$__rate_interval"] = "10s"


def filled(expression: str) -> str:
    """The expression with values in place of the dashboard's variables."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def test_the_dashboard_has_a_timeline_of_owners_and_a_heat_map() -> None:
    of_kind = {panel["type"]: panel for panel in BOARD["panels"] if panel["title"] in ("Owners", "Lag by hash")}
    assert of_kind.keys() == {"state-timeline", "heatmap"}
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    assert len(EXPRESSIONS) > len(BOARD["panels"]) > 20


@pytest.mark.long
@pytest.mark.server
@pytest.mark.skipif(not (PROMTOOL and PROMETHEUS), reason=NO_PROMETHEUS)
def test_every_expression_of_the_dashboard_has_data_in_prometheus(
    valkey: OwnValkey, kafka: Kafka, tmp_path: Path
) -> None:
    topic = kafka.create_topic("dashboard")
    kafka.produce(topic, keyed(50))
    live(valkey.address, HOSTILE, topic, host=HOSTILE)
    with exporter(valkey.address, kafka.bootstrap) as running, prometheus(tmp_path, running.port) as server:
        for expression in EXPRESSIONS:
            assert "$" not in filled(expression)
            server.wait_for(filled(expression))
        (lag,) = server.query("coop_kafka_consumer_group_topic_lag")
        assert (lag["metric"]["group_id"], lag["value"][1]) == (HOSTILE, "45")
        server.wait_for("up == 1")
        assert server.query('ALERTS{alertstate="firing"}') == []
