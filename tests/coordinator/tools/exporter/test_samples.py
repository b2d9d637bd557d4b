"""The samples of one look, from group state and log ends."""

from dataclasses import replace

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import BATCH_BUDGET, LONGEST_BATCH, GroupState
from coordinator.redis.lane_lines import BatchLine
from coordinator.tools.exporter.metrics import METRICS
from coordinator.tools.exporter.samples import ExporterLook, Sample, samples
from coordinator.tools.operations.group_look import GroupLook
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from group_states import LOWER, OTHER, TP, UPPER, group_state

NOW = 100_000
FIELDS = {"host": "h1", BATCH_BUDGET: "10000", LONGEST_BATCH: "300000"}
STATE = replace(
    group_state(((LOWER, 24), (UPPER, 8))),
    now_ms=NOW,
    meta={"nonce": "n", "generation": "3", "generation_at": "40000", "protocol": "grouped 1"},
    leases_ms={"m-1": NOW + 5_000},
    members={"m-1": FIELDS},
    hung_ms={"m-1": NOW + 298_000},
    ends={TP: 30, OTHER: 3},
)
STRIKES = (
    Strike(TP, LOWER, OffsetRange(5, 6), 2, 1_000, "m-0", parked=True),
    Strike(OTHER, WHOLE, OffsetRange(7, 9), 1, 2_000, "m-0"),
)
FAILING = (FailingRecord(TP, 7, 9, 2, 5), FailingRecord(TP, 8, 12, 2, 5), FailingRecord(TP, 9, 8, 2, 5, parked=True))
BATCHES = ((1, BatchLine("m-1", 5, None, 4.0, 2, "-")), (2, BatchLine("m-1", 5, None, 7.5, 2, "-")))


def of(look: ExporterLook) -> dict[tuple[str, tuple[str, ...]], float]:
    """All samples. A record is as many seconds old as its offset is below 100."""
    found = list(samples(look, lambda _, position: 100.0 - position))
    assert all(len(sample.metric.labels) == len(sample.labels) for sample in found)
    values = {(sample.metric.name, sample.labels): float(sample.value) for sample in found}
    assert len(values) == len(found), "no series twice"
    return values


def of_state(state: GroupState = STATE, **more: object) -> dict[tuple[str, tuple[str, ...]], float]:
    return of(ExporterLook({"g": GroupLook("g", state, **more)}, state.ends or None, 0.5))  # type: ignore[arg-type]


def test_a_group_at_work_is_seen_whole() -> None:
    found = of_state(batches=BATCHES, strikes=STRIKES, failing=FAILING)
    group = "coop_kafka_consumer_group_"
    first, second, member = ("g", "orders", "0"), ("g", "orders", "1"), ("g", "m-1")
    expected: dict[tuple[str, tuple[str, ...]], float] = {
        ("coop_redis_up", ()): 1,
        ("coop_kafka_up", ()): 1,
        ("coop_exporter_scrape_seconds", ()): 0.5,
        ("coop_kafka_topic_partition_high_water_mark", ("orders", "0")): 30,
        ("coop_kafka_topic_partition_high_water_mark", ("orders", "1")): 3,
        (f"{group}readable", ("g",)): 1,
        (f"{group}writable", ("g",)): 1,
        (f"{group}info", ("g", "grouped 1", "PreparingRebalance")): 0,
        (f"{group}members", ("g",)): 1,
        (f"{group}rebalances_total", ("g",)): 3,
        (f"{group}generation_age_seconds", ("g",)): 60,
        (f"{group}parked_lanes", ("g",)): 1,
        (f"{group}lanes_on_trial", ("g",)): 1,
        (f"{group}parked_keys", ("g",)): 1,
        (f"{group}deferred_keys", ("g",)): 2,
        (f"{group}deferred_age_seconds", ("g",)): 91,
        (f"{group}member_info", (*member, "h1", "working")): 1,
        (f"{group}member_lease_seconds", member): 5,
        (f"{group}member_batch_seconds", member): 2,
        (f"{group}member_last_batch_seconds", member): 7.5,
        (f"{group}member_batch_budget_seconds", member): 10,
        (f"{group}member_longest_batch_seconds", member): 300,
        (f"{group}wanted_slots", ("g",)): 1,
        (f"{group}topic_lag", ("g", "orders")): 22,
        **{(f"{group}topic_hash_lag", ("g", "orders", str(digit))): 6 if digit < 4 else 22 for digit in range(8)},
        (f"{group}topic_partition_lag", first): 22,
        (f"{group}topic_partition_lag", second): 0,
        (f"{group}topic_partition_stable_offset", first): 8,
        (f"{group}topic_partition_stable_offset", second): 3,
        (f"{group}topic_partition_head_of_line_gap", first): 16,
        (f"{group}topic_partition_head_of_line_gap", second): 0,
        (f"{group}topic_partition_lane_lag_seconds", first): 92,
        (f"{group}topic_partition_lane_lag_seconds", second): 97,
        (f"{group}topic_partition_owned_ratio", (*first, "m-1")): 0.5,
    }
    assert found == expected
    assert {name for name, _ in found} == {metric.name for metric in METRICS}


def test_the_lag_grows_without_members() -> None:
    alone = replace(STATE, leases_ms={})
    before, after = of_state(alone), of_state(replace(alone, ends={TP: 1_030, OTHER: 3}))
    lag = "coop_kafka_consumer_group_topic_lag", ("g", "orders")
    assert after[lag] - before[lag] == 1_000
    assert (after["coop_kafka_consumer_group_members", ("g",)], "owned" in str(after)) == (0, False)


def test_a_member_whose_lease_has_ended_is_no_member() -> None:
    found = of_state(replace(STATE, leases_ms={"m-1": NOW}))
    assert found["coop_kafka_consumer_group_member_lease_seconds", ("g", "m-1")] == 0, "it still owns ranges"
    assert found["coop_kafka_consumer_group_members", ("g",)] == 0


def test_kafka_did_not_answer__there_is_no_lag() -> None:
    found = of_state(replace(STATE, ends={}))
    assert found["coop_kafka_up", ()] == 0
    assert [name for name, _ in found if "lag" in name or "high_water" in name] == []
    assert found["coop_kafka_consumer_group_topic_partition_stable_offset", ("g", "orders", "0")] == 8


def test_kafka_lacks_a_partition__its_topic_has_no_lag() -> None:
    found = of_state(replace(STATE, ends={TP: 30}))
    assert [labels for name, labels in found if name.endswith("partition_lag")] == [("g", "orders", "0")]
    assert ("coop_kafka_consumer_group_topic_lag", ("g", "orders")) not in found


def test_redis_did_not_answer__there_are_no_groups() -> None:
    assert of(ExporterLook(None, {}, 2.0)) == {
        ("coop_redis_up", ()): 0,
        ("coop_exporter_scrape_seconds", ()): 2,
    }


def test_a_damaged_group_hides_no_other() -> None:
    found = of(ExporterLook({"bad": None, "g": GroupLook("g", STATE)}, {}, 0.0))
    assert found["coop_kafka_consumer_group_readable", ("bad",)] == 0
    assert found["coop_kafka_consumer_group_members", ("g",)] == 1


def test_ranges_at_void_lane_epochs_have_no_owner() -> None:
    found = of_state(replace(STATE, meta={**STATE.meta, "nonce": "other"}))
    assert "coop_kafka_consumer_group_topic_partition_owned_ratio" not in {name for name, _ in found}


def test_a_group_that_nobody_has_joined_has_no_age_and_no_batch() -> None:
    found = of_state(replace(STATE, meta={"nonce": "n"}, leases_ms={}, owners={}))
    assert [name for name, _ in found if "age" in name or "member_" in name] == [
        "coop_kafka_consumer_group_deferred_age_seconds"
    ]
    assert found["coop_kafka_consumer_group_deferred_age_seconds", ("g",)] == 0


def test_a_partition_has_five_series_and_one_for_each_owner() -> None:
    owners = tuple((hashes, "n.1", f"m-{n % 4}") for n, hashes in enumerate(cuts(10)))
    leases = {f"m-{n}": NOW + 1 for n in range(4)}
    found = of_state(replace(STATE, owners={TP: owners}, leases_ms=leases))
    assert sum("topic_partition" in name and "0" in labels for name, labels in found) == 5 + 4


def test_no_label_carries_a_key() -> None:
    """Hash ranges of one key, failing keys, and their messages: none of them is in a label."""
    key_hash = 0x1234567890ABCDEF
    failing = FailingRecord(TP, key_hash, 9, 2, 5, error="E", message="customer-17")
    labels = {text for _, of_sample in of_state(failing=(failing,)) for text in of_sample}
    assert labels == {"g", "orders", "m-1", "h1", "working", "grouped 1", "PreparingRebalance", *"01234567"}
    assert {name for metric in METRICS for name in metric.labels} == {
        *("group_id", "topic_name", "partition_id", "member_id"),
        *("host", "protocol", "state", "first_digit"),
    }


def test_a_sample_has_a_metric_labels_and_a_value() -> None:
    first = next(iter(samples(ExporterLook(None, None, 0.0), lambda *_: None)))
    assert isinstance(first, Sample)
    assert (first.metric.name, first.labels, first.value) == ("coop_redis_up", (), False)
