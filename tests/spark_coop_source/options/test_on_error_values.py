"""`OnError` travels as text, and each wrong parameter is a named error before a query exists."""

import datetime as dt
import json
import operator
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.errors import ConfigurationError, ConflictingOptionsError, FunctionNotAllowedError, InvalidOptionError
from spark_coop_source import OnError, map_keys
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.function.matching import ErrorMatching
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.options import validate

BATCH = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}
STREAM = BATCH | {"group": "g", "redisUrl": "redis://host:6379"}


def of_key(key: object, records: object) -> None:
    """Nothing."""


async def awaits(key: object, records: object) -> None:
    """Nothing."""


def given(on_error: Any, function: Any = of_key, **more: Any) -> dict[str, str]:
    return map_keys(function, "n long", on_error=on_error, **more)


def policy(on_error: OnError, function: Any = of_key) -> ErrorPolicy | None:
    return validate(STREAM | given(on_error, function), streaming=True).function_on_error


def test_without_on_error_there_is_no_policy() -> None:
    assert validate(STREAM | given(None), streaming=True).function_on_error is None


def test_its_parameters_arrive() -> None:
    assert policy(OnError()) == ErrorPolicy(group="g")
    every = OnError(7, "1s", "2m", "dead_letter", "orders-dead", (OSError, KeyError), "json:JSONDecodeError")
    assert policy(every, awaits) == ErrorPolicy(
        7,
        1_000,
        120_000,
        "dead_letter",
        "orders-dead",
        ("builtins:OSError", "builtins:KeyError"),
        ("json:JSONDecodeError",),
        group="g",
    )


def test_a_class_and_a_predicate_of_the_job_travel_by_value() -> None:
    class ShopError(Exception):
        """Of the job."""

    found = policy(OnError(retry_on=ShopError, fail_on=lambda error: "no" in str(error)))
    assert found
    errors = ErrorMatching.of(found)
    assert errors.retries(ShopError("busy"))
    assert not errors.retries(ValueError("busy"))
    assert errors.fails(ValueError("no"))
    assert not errors.fails(ValueError("busy"))


@pytest.mark.parametrize(
    ("on_error", "words"),
    [
        pytest.param(OnError(attempts=0), "attempts of OnError = '0': too small", id="no attempt"),
        pytest.param(OnError(attempts=2.5), "attempts of OnError = '2.5': it is of type float", id="half an attempt"),  # type: ignore[arg-type]
        pytest.param(OnError(attempts="many"), "attempts of OnError = 'many': not a whole number", id="a word"),  # type: ignore[arg-type]
        pytest.param(OnError(attempts=True), "attempts of OnError is of type bool", id="a truth value"),
        pytest.param(OnError(backoff="soon"), "backoff of OnError = 'soon': not a duration", id="no duration"),
        pytest.param(OnError(backoff="2d"), "backoff of OnError = '2d': too long", id="a long back-off"),
        pytest.param(OnError(backoff_max="-1s"), "backoff_max of OnError = '-1s': not a dur", id="a negative one"),
        pytest.param(OnError(backoff="10m"), "backoff of OnError (600000 ms) is longer than backoff_max", id="crossed"),
        pytest.param(OnError(backoff=dt.timedelta(1)), "backoff of OnError is of type timedelta", id="a delta"),  # type: ignore[arg-type]
        pytest.param(OnError(then="retry"), "then of OnError = 'retry': unknown word", id="another word"),
        pytest.param(OnError(then="dead_letter"), "then of OnError is dead_letter, without a topic", id="no topic"),
        pytest.param(OnError(topic="dead"), "then of OnError is fail, with the topic", id="a topic for nothing"),
        pytest.param(OnError(then="dead_letter", topic="a b"), "topic of OnError = 'a b': no topic can", id="no name"),
        pytest.param(OnError(retry_on=3), "a value of retry_on of OnError is of type int", id="a number"),  # type: ignore[arg-type]
        pytest.param(OnError(retry_on=int), "retry_on of OnError = 'builtins:int': it is a class, and", id="a class"),  # type: ignore[arg-type]
        pytest.param(
            OnError(fail_on="no_such:E"), "fail_on of OnError = 'no_such:E': it cannot be imp", id="no module"
        ),
        pytest.param(OnError(fail_on="Error"), "fail_on of OnError = '(pickled)': it is neither module", id="no colon"),
        pytest.param(OnError(retry_on=awaits), "retry_on of OnError = 'awaits': it is a coroutine fun", id="async"),  # type: ignore[arg-type]
        pytest.param({"attempts": 5}, "on_error is of type dict", id="a dict"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_at_the_call(on_error: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        given(on_error)
    assert words in str(caught.value)
    assert caught.value.remedy


def test_a_value_that_cannot_be_pickled_is_refused_by_name() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidOptionError, match=r"a value of retry_on of OnError cannot be pickled \(TypeError"):
        given(OnError(retry_on=lambda error: bool(lock)))


PER_KEY = {"function": "operator:add", "functionSchema": "n long", "functionTakes": "keys"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"functionOnError": "{"}, "option functionOnError = '{': not JSON", id="broken JSON"),
        pytest.param({"functionOnError": "[]"}, "not a JSON object", id="a list"),
        pytest.param({"functionOnError": '{"tries":3}'}, "unknown parameter 'tries'; it has", id="unknown"),
        pytest.param({"functionOnError": '{"then":"skip","then":"fail"}'}, "occurs twice", id="twice"),
        pytest.param({"functionOnError": '{"retry_on":"E"}'}, "retry_on of OnError = 'E': not a", id="no list"),
        pytest.param({"functionTimeout": "1s"}, "a call that runs in a thread", id="timeout"),
        pytest.param({"functionTimeout": "0s"}, "option functionTimeout = '0s': too short", id="no time at all"),
        pytest.param(
            {"function": map_keys(of_key, "n long")["function"],
             "functionTimeout": "1s"},
            "a call that runs in a thread cannot be", id="timeout, pickled",
        ),
        pytest.param({"functionTakes": "batches", "function": "builtins:len", "functionOnError": "{}"},
                     "function takes batches", id="batches"),
        pytest.param({"function": None, "functionSchema": None, "functionOnError": "{}"},
                     "functionOnError is set, but not function", id="no function"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("streaming", [None, False])
def test_a_wrong_text_is_refused_by_name(options: Mapping[str, str | None], words: str, streaming: bool | None) -> None:
    every = BATCH | PER_KEY | dict(options)
    with pytest.raises(ConfigurationError) as caught:
        validate({name: text for name, text in every.items() if text is not None}, streaming=streaming)
    assert words in str(caught.value)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("options", "streaming", "why"),
    [
        pytest.param(BATCH, False, "it reads without a group", id="spark.read"),
        pytest.param(BATCH | {"assign": '{"orders":[0]}'}, True, "it reads without a group", id="no group"),
        pytest.param(STREAM | {"ordering": "none"}, True, "its ordering is none", id="no order"),
        pytest.param(STREAM | {"batchTimeBudget": "0"}, True, "its batchTimeBudget is 0", id="no budget"),
        pytest.param(STREAM | {"allowUnreadBatches": "true"}, True, "allowUnreadBatches is true", id="unread"),
    ],
)
def test_a_key_can_be_parked_only_where_tasks_may_end_early(options: dict[str, str], streaming: bool, why: str) -> None:
    if "assign" in options:
        options = {name: text for name, text in options.items() if name != "subscribe"}
    with pytest.raises(ConflictingOptionsError, match=why) as caught:
        validate(options | given(OnError(then="park")), streaming=streaming)
    assert "dead_letter" in caught.value.remedy
    assert validate(STREAM | given(OnError(then="park")), streaming=True).function_on_error


@pytest.mark.parametrize(
    ("value", "words"),
    [
        pytest.param("builtins:TimeoutError", "", id="an exception of Python"),
        pytest.param("operator:eq", "", id="a module of the list"),
        pytest.param("builtins:exec", "a value of retry_on or fail_on is of the module 'builtins'", id="no exception"),
        pytest.param("json:loads", "a value of retry_on or fail_on is of the module 'json'", id="another module"),
        pytest.param("pickle", "a value of retry_on or fail_on is pickled", id="a pickle"),
    ],
)
def test_an_administrator_allows_certain_functions(monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    monkeypatch.setenv("COOP_FUNCTIONS", "_operator,operator")
    options = BATCH | PER_KEY | {"functionOnError": json.dumps({"retry_on": [value]})}
    if not words:
        assert validate(options, streaming=False).function_on_error
        return
    with pytest.raises(FunctionNotAllowedError) as caught:
        validate(options, streaming=False)
    assert words in str(caught.value)


def test_a_text_for_sql_is_short() -> None:
    text = OnError(then="skip").text
    assert json.loads(text) == {"attempts": 5, "backoff": "200ms", "backoff_max": "5m", "then": "skip"}
    assert OPTION_OF["function_on_error"].parse(text) == ErrorPolicy(then="skip")
    assert operator.eq(OPTION_OF["function_on_error"].parse("{}"), ErrorPolicy())
