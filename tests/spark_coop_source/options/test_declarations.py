"""The declared options: names, nearest names, each has a meaning and a default that fits, and errors name only them."""

import ast
import re
from collections.abc import Iterator

import pytest

from broker_jars import ROOT
from coordinator import errors
from coordinator.errors import UnknownOptionError
from coordinator.values.options import key_of
from pages.option_meanings import MEANINGS
from spark_coop_source.options import names
from spark_coop_source.options.declarations import OPTION_OF, SourceOptions
from spark_coop_source.options.options import validate

LOOKS_LIKE_AN_OPTION = re.compile(r"(?<![\w./])(?:[a-z]+[A-Z]\w*|[a-z]\w*(?=\.))(?:\.[a-zA-Z_]+)*")
NO_OPTIONS = {
    "spark.executor.pyspark.memory",
    "checkpointLocation",
    "availableNow",
    "spark.read",
    "e.g",
    "max.message.bytes",  # of a topic
    "segment.bytes",
    "cleanup.policy",
    "spark_coop_source.OwnershipListener",
}
BEGINNINGS = {"filter", "kafka", "kafka.ssl"}  # of several names, or of names that the code puts together


def told_by_errors() -> Iterator[str]:
    """Every cause and remedy that the code passes to an error of ours."""
    for file in (f for package in ("coordinator", "spark_coop_source") for f in (ROOT / package).rglob("*.py")):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and hasattr(errors, getattr(call.func, "id", "")):
                parts = (p for argument in call.args for p in ast.walk(argument))
                yield from (p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str))


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        pytest.param("startingOffset", "startingOffsets", id="a letter is missing"),
        pytest.param("minPartition", "minPartitions", id="the singular"),
        pytest.param("kafka.fetch.max.byte", "kafka.fetch.max.bytes", id="a Kafka option with a letter missing"),
        pytest.param("bootstrap.servers", "kafka.bootstrap.servers", id="the prefix is missing"),
        pytest.param("kafka.bootstrap.server", "kafka.bootstrap.servers", id="Kafka's most common slip"),
        pytest.param("path", "load()", id="load with a path"),
        pytest.param("owner", "TEMPORARY VIEW", id="CREATE TABLE"),
        pytest.param("option.subscribe", "TEMPORARY VIEW", id="CREATE TABLE with options"),
        pytest.param("topic", "subscribe", id="an option of Spark's Kafka sink"),
        pytest.param("kafka.zork", "docs/options.md", id="nothing of Kafka's is near"),
        pytest.param("zzzzzzzzzzzzzz", "docs/options.md", id="nothing is near"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(name: str, remedy: str) -> None:
    with pytest.raises(UnknownOptionError) as refused:
        names.check_name(name)
    assert name in refused.value.what
    assert remedy in refused.value.remedy


@pytest.mark.parametrize("name", ["subscribePattern", "SUBSCRIBEPATTERN", "subscribepattern", "KAFKA.client.ID"])
def test_a_name_is_known_in_any_case(name: str) -> None:
    names.check_name(name)


def test_the_value_of_an_unknown_option_is_not_shown() -> None:
    with pytest.raises(UnknownOptionError) as refused:
        validate({"kafka.sasl.passwort": "hunter2"}, streaming=True)
    assert "hunter2" not in str(refused.value)


def test_every_option_that_is_declared_has_a_meaning_on_the_page_once() -> None:
    assert sorted(field for fields in MEANINGS.values() for field in fields) == sorted(OPTION_OF)


def test_no_two_options_have_one_name() -> None:
    spelled = [option.key for option in OPTION_OF.values()]
    assert len(spelled) == len({*spelled})


@pytest.mark.parametrize("field", [field for field, option in OPTION_OF.items() if option.default is not None])
def test_a_setting_without_the_option_has_the_default_that_the_page_names(field: str) -> None:
    option = OPTION_OF[field]
    assert getattr(SourceOptions(kafka={}), field) == option.parse(str(option.default))


def test_every_option_that_an_error_names_is_declared() -> None:
    named = {word for text in told_by_errors() for word in LOOKS_LIKE_AN_OPTION.findall(text)} - NO_OPTIONS - BEGINNINGS
    options = {name for name in named if key_of(name) in names.NAMES}
    assert len(options) > 25
    assert sorted(named - options) == []
