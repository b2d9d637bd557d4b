"""Options together: one checked value, or an error that names option, value, limit and remedy."""

import dataclasses
import pickle
from collections.abc import Mapping

import pytest

from coordinator.errors import (
    ConfigurationError,
    ConflictingOptionsError,
    InvalidOptionError,
    MissingOptionError,
    UnknownOptionError,
)
from coordinator.values.offset_spec import Earliest, Latest, NoMatch
from coordinator.values.ranges import WHOLE
from coordinator.values.record_filter import EVERYTHING
from coordinator.values.subscription import Assigned, Pattern, TopicPartition, Topics
from spark_coop_source.arrow_output.schema import EVERY, PLAIN
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.options import validate

BROKER = {"kafka.bootstrap.servers": "broker:9092"}
BATCH = {**BROKER, "subscribe": "orders"}
GROUP = {"group": "g", "redisUrl": "redis://localhost:6379"}
STREAM = {**BATCH, **GROUP}
ASSIGNED = {**BROKER, "assign": '{"orders":[0]}'}
KEY_RANGES = {**BROKER, "assign": '{"orders":{"0":[[0,9]]}}'}


def test_a_group_without_a_url_takes_the_redis_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    without = {name: value for name, value in STREAM.items() if name != "redisUrl"}
    monkeypatch.setenv("COOP_REDIS", "redis://of-the-environment:6379/1")
    assert validate(without, streaming=True).redis_url == "redis://of-the-environment:6379/1"
    assert validate(STREAM, streaming=True).redis_url == STREAM["redisUrl"], "the option is stronger"
    assert validate(without, streaming=False).redis_url is None
    monkeypatch.setenv("COOP_REDIS", "http://s3cret@nowhere")
    with pytest.raises(InvalidOptionError, match="the value is that of COOP_REDIS") as caught:
        validate(without, streaming=True)
    assert "s3cret" not in str(caught.value)
    monkeypatch.delenv("COOP_REDIS")
    with pytest.raises(MissingOptionError, match="or set COOP_REDIS where the driver runs"):
        validate(without, streaming=True)


def stream(**more: str) -> SourceOptions:
    return validate(STREAM | more, streaming=True)


def refusal(options: Mapping[str, str], *, streaming: bool | None = True) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        validate(options, streaming=streaming)
    assert caught.value.remedy
    return caught.value


def test_defaults_of_a_stream_are_those_of_spark_and_of_the_specification() -> None:
    checked = stream(slots="4")
    assert (checked.subscription, checked.columns) == (Topics(("orders",)), PLAIN)
    assert (checked.starting, checked.ending) == (Latest(), Latest())
    assert checked == SourceOptions(
        kafka={"bootstrap_servers": ["broker:9092"], "security_protocol": "PLAINTEXT"},
        subscribe=Topics(("orders",)),
        subscribe_pattern=None,
        assign=None,
        include_headers=False,
        named_columns=None,
        filter_ranges=None,
        filter_allow=None,
        filter_deny=None,
        filter_least_bytes=0,
        filter_most_bytes=None,
        starting_timestamp=None,
        starting_by_timestamp=None,
        starting_offsets=Latest(),
        starting_strategy=NoMatch.ERROR,
        ending_timestamp=None,
        ending_by_timestamp=None,
        ending_offsets=Latest(),
        group_id_prefix=None,
        group="g",
        redis_url="redis://localhost:6379",
        fail_on_data_loss=True,
        max_offsets_per_trigger=None,
        min_offsets_per_trigger=None,
        max_trigger_delay_ms=900_000,
        min_partitions=None,
        max_records_per_partition=None,
        filter=EVERYTHING,
        push_filters=False,
        fetch_retries=3,
        fetch_retry_interval_ms=1_000,
        poll_timeout_ms=120_000,
        most_unfiltered=100 * 1024 * 1024,
        most_uncompressed=1024 * 1024 * 1024,
        cache_bytes=200 * 1024 * 1024,
        slots=4,
        capacity=4,
        lanes=None,
        session_ms=45_000,
        heartbeat_ms=3_000,
        longest_ms=300_000,
        batch_budget_ms=10_000,
        max_lead_ms=None,
        retention_ms=10_080 * 60_000,
        max_outage_ms=60_000,
        kafka_max_outage_ms=300_000,
        growth_grace_ms=600_000,
        on_state_loss="fail",
        listener=None,
        assignor="grouped",
        copartition=(),
        labels={},
        report_ports=range(1),
        sharing="auto",
        several_queries=False,
        redundancy=1,
        standby=False,
        ordering="key",
        unread_batches=False,
        replay_acknowledged=True,
        function=None,
        function_output=None,
        takes="batches",
        concurrency=1,
        timeout_ms=None,
        function_on_error=None,
        notices=(),
        max_individual_commits=10_000,
        max_deferred_keys=10_000,
    )


@pytest.mark.parametrize(
    ("more", "field", "value"),
    [
        pytest.param(
            {"subscribe": " a, b ,,a"}, "subscription", Topics(("a", "b")), id="topics are trimmed, once each"
        ),
        pytest.param({"SUBSCRIBE": "Orders"}, "subscription", Topics(("Orders",)), id="names in any case, not values"),
        pytest.param({"failOnDataLoss": "FALSE"}, "fail_on_data_loss", False, id="a switch in any case"),
        pytest.param({"includeHeaders": "true"}, "columns", EVERY, id="headers on request"),
        pytest.param(
            {"columns": "acknowledgement, headers, key"},
            "columns",
            ("key", "headers", "acknowledgement"),
            id="acknowledgements come last",
        ),
        pytest.param({"columns": "value, key"}, "columns", ("key", "value"), id="some columns, in a row's order"),
        pytest.param({"maxOffsetsPerTrigger": "10"}, "max_offsets_per_trigger", 10, id="the most of a batch"),
        pytest.param({"minOffsetsPerTrigger": "0"}, "min_offsets_per_trigger", 0, id="no least of a batch"),
        pytest.param({"maxTriggerDelay": "90s"}, "max_trigger_delay_ms", 90_000, id="a delay with a unit"),
        pytest.param({"maxTriggerDelay": "2 "}, "max_trigger_delay_ms", 2, id="a delay without one is milliseconds"),
        pytest.param({"maxTriggerDelay": "2000us"}, "max_trigger_delay_ms", 2, id="a delay in microseconds"),
        pytest.param({"minPartitions": "+5"}, "min_partitions", 5, id="a sign, as Java reads it"),
        pytest.param({"maxRecordsPerPartition": "7"}, "max_records_per_partition", 7, id="records of a task"),
        pytest.param({"fetchOffset.numRetries": "0"}, "fetch_retries", 0, id="no retry"),
        pytest.param({"fetchOffset.retryIntervalMs": "5"}, "fetch_retry_interval_ms", 5, id="pause between retries"),
        pytest.param({"kafkaConsumer.pollTimeoutMs": "512"}, "poll_timeout_ms", 512, id="patience of a task"),
        pytest.param({"sharedCache": "0"}, "cache_bytes", 0, id="no cache"),
        pytest.param({"groupIdPrefix": "team-"}, "group", "g", id="a group id prefix changes nothing"),
        pytest.param({"kafka.group.id": "g"}, "group", "g", id="both names of the group with the same value"),
        pytest.param({"slots": "1024"}, "capacity", 1024, id="capacity follows slots"),
        pytest.param({"slots": "2", "capacity": "9"}, "capacity", 9, id="capacity by itself"),
        pytest.param({"lanes": "4096"}, "lanes", 4096, id="the most lanes"),
        pytest.param({"sessionTimeout": "6000"}, "heartbeat_ms", 2_000, id="heartbeats fit a short session"),
        pytest.param({"heartbeatInterval": "15000"}, "heartbeat_ms", 15_000, id="heartbeats of a third of it"),
        pytest.param({"longestBatch": "1000"}, "longest_ms", 1_000, id="the shortest longest batch"),
        pytest.param({"offsetsRetention": "2d"}, "retention_ms", 172_800_000, id="retention in days"),
        pytest.param({"redisMaxOutage": "2m"}, "max_outage_ms", 120_000, id="an outage with a unit"),
        pytest.param({"memberLabels": "zone=a, team=b=c"}, "labels", {"zone": "a", "team": "b=c"}, id="labels"),
        pytest.param({"sharing": "Required"}, "sharing", "required", id="a query that asks for parts"),
        pytest.param({"sharing": "never"}, "sharing", "never", id="a query that reads alone"),
        pytest.param({"allowIndividualCommit": "True"}, "sharing", "required", id="the same in the words of the KIP"),
        pytest.param({"allowIndividualCommit": "false"}, "sharing", "partitions", id="whole partitions only"),
        pytest.param({"partitionGrowthGrace": "0"}, "growth_grace_ms", 0, id="order across growth switched off"),
        pytest.param({"assignor": "roundrobin"}, "assignor", "roundrobin", id="an assignor by name"),
        pytest.param({"allowSeveralQueries": "true"}, "several_queries", True, id="several queries"),
        pytest.param(
            {"subscribe": "a,b,c", "copartition": " b,a"}, "copartition", ("a", "b"), id="joined topics in any order"
        ),
        pytest.param({"replayAcknowledged": "false"}, "replay_acknowledged", False, id="replays of the rest"),
        pytest.param({"allowUnreadBatches": "true"}, "unread_batches", True, id="unread batches"),
        pytest.param({"onStateLoss": "Earliest"}, "on_state_loss", "earliest", id="a word in any case"),
    ],
)
def test_an_option_of_a_stream_is_understood(more: dict[str, str], field: str, value: object) -> None:
    options = {name: text for name, text in STREAM.items() if name not in {n.lower() for n in more}} | more
    assert getattr(validate(options, streaming=True), field) == value


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("kafka.session.timeout.ms", " 6000", "session_ms", 6_000),
        ("kafka.heartbeat.interval.ms", "500", "heartbeat_ms", 500),
        ("kafka.max.poll.interval.ms", "600000", "longest_ms", 600_000),
        ("offsets.retention.minutes", "1", "retention_ms", 60_000),
        ("max.bytes.key.range.cache", "64KiB", "cache_bytes", 65_536),
        ("max.bytes.fetcher.filtering", "1g", "most_unfiltered", 2**30),
        ("allow.individual.commit", "false", "sharing", "partitions"),
        ("max.individual.commits", "7", "max_individual_commits", 7),
    ],
)
def test_a_name_of_kafka_or_of_a_kip_sets_the_same_option(name: str, text: str, field: str, value: object) -> None:
    assert getattr(validate(STREAM | {name: text}, streaming=True), field) == value


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("session.timeout.ms", "did you mean sessionTimeout"),
        ("heartbeat.interval.ms", "did you mean heartbeatInterval"),
        ("longest.batch.ms", "did you mean longestBatch"),
        ("gap.max.wait.ms", "set sessionTimeout"),
        ("max.num.ranges.to.commit", "pass max_ranges to Acknowledger"),
        ("map.in.read.schema", "functionSchema"),
    ],
)
def test_a_former_name_is_refused_with_the_new_one(name: str, remedy: str) -> None:
    with pytest.raises(UnknownOptionError, match=remedy):
        validate(STREAM | {name: "9"}, streaming=True)


@pytest.mark.parametrize(
    "given",
    [
        {"kafka.session.timeout.ms": "3600000"},
        {"kafka.session.timeout.ms": "6000", "kafka.heartbeat.interval.ms": "3000"},
        {"kafka.max.poll.interval.ms": "500"},
        {"kafka.group.id": ""},
    ],
)
def test_settings_of_kafkas_groups_do_not_stop_a_batch(given: dict[str, str]) -> None:
    batch = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    assert validate(batch | given, streaming=False)
    assert validate(batch | given, streaming=None)


def test_two_names_of_one_option_may_say_the_same_in_other_words() -> None:
    same = {"sessionTimeout": "6s", "kafka.session.timeout.ms": "6000"}
    assert validate(STREAM | same, streaming=True).session_ms == 6_000


def test_names_in_lower_case_as_spark_hands_them_on_mean_the_same() -> None:
    mixed = STREAM | {"minPartitions": "3", "kafkaConsumer.pollTimeoutMs": "9", "includeHeaders": "true", "slots": "1"}
    lower = {name.lower(): text for name, text in mixed.items()}
    assert validate(mixed, streaming=True) == validate(lower, streaming=True)


@pytest.mark.parametrize("name", ["batchTimeBudget", "batch.time.budget", "batch_time_budget", "BATCH.TIME_budget"])
def test_case_dots_and_underscores_of_a_name_do_not_matter(name: str) -> None:
    assert validate(STREAM | {name: "7s"}, streaming=True).batch_budget_ms == 7_000


def test_an_option_in_two_spellings_is_refused() -> None:
    with pytest.raises(ConflictingOptionsError, match="batch_time_budget is set twice"):
        validate(STREAM | {"batchTimeBudget": "7s", "batch_time_budget": "8s"}, streaming=True)


def test_kafka_group_id_is_the_group() -> None:
    options = validate({**BATCH, "redisUrl": "redis://h", "kafka.group.id": " a group "}, streaming=True)
    assert options.group == "a group"


def test_options_survive_pickling_and_show_no_secret() -> None:
    options = stream(
        **{
            "redisUrl": "redis://user:redis-secret@h:1/0",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": 'a.PlainLoginModule required username="u" password="sasl-secret";',
        }
    )
    again = pickle.loads(pickle.dumps(options))
    assert again == options
    assert again.kafka["sasl_plain_password"] == "sasl-secret"
    assert "secret" not in repr(options) + repr(again) + str(again.kafka)


@pytest.mark.parametrize(
    ("options", "standalone"),
    [
        pytest.param(ASSIGNED, True, id="partitions in Spark's form and no group"),
        pytest.param(KEY_RANGES, True, id="key ranges and no group"),
        pytest.param(ASSIGNED | GROUP, False, id="partitions and a group"),
        pytest.param({**BROKER, "assign": '{"orders":{"0":[]}}', **GROUP}, False, id="whole partitions and a group"),
        pytest.param(KEY_RANGES | GROUP, False, id="key ranges and a group"),
    ],
)
def test_assign_decides_with_the_group_whether_a_stream_is_standalone(
    options: dict[str, str], standalone: bool
) -> None:
    assert validate(options, streaming=True).standalone is standalone


def test_a_batch_ignores_group_and_redis_and_starts_at_earliest() -> None:
    plain = validate(BATCH | {"slots": "1"}, streaming=False)
    assert (plain.group, plain.redis_url, plain.starting, plain.ending) == (None, None, Earliest(), Latest())
    assert validate(STREAM | {"slots": "1"}, streaming=False) == plain


def test_before_the_kind_of_query_is_known_only_options_invalid_for_both_are_refused() -> None:
    options = validate({**BATCH, "endingOffsets": "latest", "startingOffsets": "latest"}, streaming=None)
    assert options.subscription == Topics(("orders",))
    assert isinstance(refusal(BATCH | {"lanes": "0"}, streaming=None), InvalidOptionError)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        pytest.param(GROUP | BROKER, MissingOptionError, ["subscribe", "subscribePattern", "assign"], id="no topics"),
        pytest.param(STREAM | ASSIGNED, ConflictingOptionsError, ["subscribe and assign"], id="topics and partitions"),
        pytest.param(
            STREAM | {"subscribePattern": "x"}, ConflictingOptionsError, ["subscribePattern"], id="topics and a pattern"
        ),
        pytest.param(
            {"subscribe": "orders", **GROUP},
            MissingOptionError,
            ["kafka.bootstrap.servers", "host:port"],
            id="no broker",
        ),
        pytest.param(BATCH, MissingOptionError, ['.option("group"', "redisUrl", "assign"], id="topics but no group"),
        pytest.param(
            BATCH | {"group": "g"}, MissingOptionError, ["'g'", '.option("redisUrl"'], id="a group but no Redis"
        ),
        pytest.param(
            ASSIGNED | {"redisUrl": "redis://h"},
            ConflictingOptionsError,
            ["without the option group", "standalone"],
            id="a Redis but no group",
        ),
        pytest.param(
            KEY_RANGES | GROUP | {"sharing": "partitions"},
            ConflictingOptionsError,
            ["assign names parts of partitions", "sharing"],
            id="key ranges and whole partitions only",
        ),
        pytest.param(
            STREAM | {"kafka.group.id": "other"},
            ConflictingOptionsError,
            ["'g'", "'other'"],
            id="two different groups",
        ),
        pytest.param(
            STREAM | {"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"},
            ConflictingOptionsError,
            ["minOffsetsPerTrigger (6)", "maxOffsetsPerTrigger (5)"],
            id="the least of a batch above the most",
        ),
        pytest.param(
            STREAM | {"sessionTimeout": "7s", "kafka.session.timeout.ms": "6000"},
            ConflictingOptionsError,
            ["options sessionTimeout ('7s') and kafka.session.timeout.ms ('6000') differ"],
            id="two different sessions",
        ),
        pytest.param(
            STREAM | {"kafka.session.timeout.ms": "6s", "offsets.retention.minutes": "7d"},
            InvalidOptionError,
            ["offsets.retention.minutes = '7d'", "a whole number from 1"],
            id="a name of a KIP keeps its unit",
        ),
        pytest.param(
            STREAM | {"sessionTimeout": "3000", "heartbeatInterval": "1001"},
            InvalidOptionError,
            ["heartbeatInterval = 1001ms", "sessionTimeout", "a third of that, 1s"],
            id="a heartbeat as long as the session",
        ),
        pytest.param(
            STREAM | {"subscribe": ""}, InvalidOptionError, ["subscribe = ''", "no topic"], id="an empty topic"
        ),
        pytest.param(STREAM | {"subscribe": " , "}, InvalidOptionError, ["no topic"], id="only commas"),
        pytest.param(STREAM | {"subscribe": "a b"}, InvalidOptionError, ["'a b'"], id="a name no topic can have"),
        pytest.param(STREAM | {"minPartitions": "0"}, InvalidOptionError, ["from 1 to 2147483647"], id="no partitions"),
        pytest.param(STREAM | {"minPartitions": " 5"}, InvalidOptionError, ["' 5'"], id="a space before a number"),
        pytest.param(STREAM | {"minPartitions": "1_0"}, InvalidOptionError, ["'1_0'"], id="Python's way of numbers"),
        pytest.param(STREAM | {"minPartitions": "٥"}, InvalidOptionError, ["not a whole number"], id="other digits"),
        pytest.param(
            STREAM | {"maxRecordsPerPartition": "-1"}, InvalidOptionError, ["too small"], id="minus one record"
        ),
        pytest.param(
            STREAM | {"maxOffsetsPerTrigger": "0"}, InvalidOptionError, ["too small"], id="batches of nothing"
        ),
        pytest.param(STREAM | {"maxTriggerDelay": "1.5s"}, InvalidOptionError, ["15m"], id="half a second"),
        pytest.param(
            STREAM | {"maxTriggerDelay": "-1"}, InvalidOptionError, ["not a duration"], id="a delay below zero"
        ),
        pytest.param(
            STREAM | {"columns": "key,Value"}, InvalidOptionError, ["'Value'", "timestampType"], id="no column"
        ),
        pytest.param(STREAM | {"columns": " "}, InvalidOptionError, ["some of key"], id="an empty row"),
        pytest.param(
            STREAM | {"columns": "key", "includeHeaders": "true"},
            ConflictingOptionsError,
            ["columns and includeHeaders", "name headers among the columns"],
            id="two ways to ask for headers",
        ),
        pytest.param(
            STREAM | {"columns": "key", "function": "os:getcwd", "functionSchema": "a int"},
            ConflictingOptionsError,
            ["columns and function", "gets every column"],
            id="columns of a function that makes its own",
        ),
        pytest.param(
            ASSIGNED | {"columns": "key,acknowledgement"},
            ConflictingOptionsError,
            ["only rows of a stream with a group", "remove acknowledgement"],
            id="acknowledgements without a group",
        ),
        pytest.param(
            STREAM | {"columns": "acknowledgement", "function": "os:getcwd", "functionSchema": "a int"},
            ConflictingOptionsError,
            ["columns and function"],
            id="acknowledgements of a function's rows",
        ),
        pytest.param(STREAM | {"includeHeaders": "yes"}, InvalidOptionError, ["'yes'", "true or false"], id="yes"),
        pytest.param(STREAM | {"failOnDataLoss": " true"}, InvalidOptionError, ["' true'"], id="a space before true"),
        pytest.param(STREAM | {"lanes": "0"}, InvalidOptionError, ["lanes = '0'", "4096"], id="no lane"),
        pytest.param(STREAM | {"lanes": "1000000"}, InvalidOptionError, ["too large", "4096"], id="a million lanes"),
        pytest.param(STREAM | {"slots": "1025"}, InvalidOptionError, ["1024"], id="too many slots"),
        pytest.param(STREAM | {"capacity": "0"}, InvalidOptionError, ["too small"], id="no capacity"),
        pytest.param(
            STREAM | {"sessionTimeout": "999"},
            InvalidOptionError,
            ["too short", "at least 1s, at most 30m"],
            id="too short a session",
        ),
        pytest.param(STREAM | {"redisMaxOutage": "25h"}, InvalidOptionError, ["at most 1d"], id="more than a day away"),
        pytest.param(
            STREAM | {"onStateLoss": "latest"}, InvalidOptionError, ["fail or earliest"], id="latest after loss"
        ),
        pytest.param(STREAM | {"endingTimestamp": "5"}, InvalidOptionError, ["batch"], id="a stream that ends"),
    ],
)
def test_options_that_cannot_be_used_are_refused(
    options: dict[str, str], error: type[ConfigurationError], words: list[str]
) -> None:
    refused = refusal(options)
    assert type(refused) is error
    assert [word for word in words if word not in str(refused)] == []


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(str(refusal(STREAM | {"startingOffsets": "x" * 100_000}))) < 1_000


def test_a_pattern_keeps_its_spelling() -> None:
    options = validate({**BROKER, "subscribePattern": " Ord.* ", **GROUP}, streaming=True)
    assert options.subscription == Pattern("Ord.*")


def test_assigned_partitions_are_whole_in_sparks_form() -> None:
    assert validate(ASSIGNED, streaming=True).subscription == Assigned({TopicPartition("orders", 0): (WHOLE,)})


def test_no_field_that_holds_a_secret_is_shown() -> None:
    shown = {field.name for field in dataclasses.fields(SourceOptions) if field.repr}
    assert "redis_url" not in shown
