"""A function travels as text, and a wrong text is refused before a query exists."""

import base64
import json
import operator
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from coordinator.errors import (
    ConfigurationError,
    EnvironmentMismatchError,
    FunctionNotAllowedError,
    InvalidOptionError,
)
from spark_coop_source import map_batches, map_keys
from spark_coop_source.function.call import FunctionCall
from spark_coop_source.function.user_function import UserFunction, as_text, loaded
from spark_coop_source.options.options import validate

BATCH = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}
OUTPUT = StructType([StructField("key", BinaryType()), StructField("n", LongType())])


def test_a_closure_comes_back_as_it_was() -> None:
    rate = 3
    assert loaded(as_text(lambda n: n * rate))(5) == 15


def test_a_name_is_looked_up_also_within_a_class() -> None:
    assert loaded("json:dumps") is json.dumps
    assert loaded("json:JSONEncoder.encode") is json.JSONEncoder.encode


def test_the_helper_returns_valid_options() -> None:
    options = validate(BATCH | map_keys(operator.add, OUTPUT, concurrency=16), streaming=False)
    assert (options.function_output, options.per_key, options.concurrency) == (OUTPUT, True, 16)
    assert loaded(options.function or "") is operator.add


def test_ddl_stays_text_for_spark_alone_can_parse_it() -> None:
    options = validate(BATCH | map_batches("json:dumps", "key binary, n long"), streaming=None)
    assert options.function_output == "key binary, n long"


def test_an_object_that_cannot_be_pickled_is_refused_when_the_function_is_set() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidOptionError, match="cannot be pickled") as caught:
        map_batches(lambda batches: lock, OUTPUT)
    assert "open them inside the function" in caught.value.remedy


async def awaits(batches: object) -> None:
    """Nothing."""


async def generates(batches: object) -> AsyncIterator[None]:
    yield


class Awaits:
    async def __call__(self, batches: object) -> None:
        """Nothing."""

    async def of_key(self, key: object, records: object) -> None:
        """Nothing."""


class AwaitsKeys:
    async def __call__(self, key: object, records: object) -> None:
        """Nothing."""


async def awaits_key(key: object, records: object) -> None:
    """Nothing."""


class Works:
    def __call__(self, batches: object) -> None:
        """Nothing."""

    def of_key(self, key: object, records: object) -> None:
        """Nothing."""


def of_key(key: object, records: object, *more: object, rate: int = 1) -> None:
    """Nothing."""


@pytest.mark.parametrize(
    ("function", "per_key", "words"),
    [
        pytest.param(generates, False, "an asynchronous generator", id="async def with yield"),
        pytest.param(None, False, "of type NoneType, which cannot be called", id="nothing"),
        pytest.param(7, True, "of type int, which cannot be called", id="a number"),
        pytest.param(of_key, False, "it takes (key", id="two arguments for batches"),
        pytest.param(lambda batches: batches, True, "it takes (batches)", id="one argument for a key"),
        pytest.param(lambda: None, False, "it takes ()", id="no argument"),
        pytest.param(
            lambda key, records, *, rate: None, True, "it takes (key, records, *, rate)", id="one more by name"
        ),
    ],
)
def test_a_function_of_another_form_is_refused_at_the_call(function: Any, per_key: bool, words: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        (map_keys if per_key else map_batches)(function, OUTPUT)
    assert words in str(caught.value)
    assert "f(key, records) for map_keys, f(batches) for map_batches" in caught.value.remedy


@pytest.mark.parametrize("function", [awaits, Awaits(), partial(awaits)])
def test_a_coroutine_function_of_batches_is_refused_at_the_call(function: Any) -> None:
    with pytest.raises(InvalidOptionError, match="map_batches calls plain functions") as caught:
        map_batches(function, OUTPUT)
    assert "pass it to map_records" in caught.value.remedy


def test_only_coroutine_functions_work_on_thousands_of_keys_at_once() -> None:
    assert map_keys(awaits_key, OUTPUT, concurrency=5_000)["functionConcurrency"] == "5000"
    with pytest.raises(InvalidOptionError, match=r"concurrency is 5000, but a plain function") as caught:
        map_keys(of_key, OUTPUT, concurrency=5_000)
    assert "at most 1024" in caught.value.remedy


@pytest.mark.parametrize(
    ("function", "per_key"),
    [
        pytest.param(Works(), False, id="an object"),
        pytest.param(Works().of_key, True, id="a method"),
        pytest.param(of_key, True, id="more arguments with defaults"),
        pytest.param(partial(of_key, b"k"), False, id="a partial"),
        pytest.param(lambda *all_of_them: None, True, id="any arguments"),
        pytest.param(dict, False, id="a builtin of unknown arguments"),
        pytest.param(awaits_key, True, id="async def"),
        pytest.param(partial(awaits_key), True, id="a partial of async def"),
        pytest.param(Awaits().of_key, True, id="a method that awaits"),
        pytest.param(AwaitsKeys(), True, id="an object that awaits"),
    ],
)
def test_a_function_that_can_be_called_is_taken(function: Any, per_key: bool) -> None:
    assert (map_keys if per_key else map_batches)(function, OUTPUT)["function"]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        pytest.param(None, "of type NoneType", id="none"),
        pytest.param(["key"], "of type list", id="a list"),
        pytest.param("", "it names no column", id="an empty text"),
        pytest.param(StructType(), "it has no field", id="no column"),
    ],
)
def test_a_schema_that_is_none_is_refused_at_the_call(schema: Any, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        map_batches("json:dumps", schema)


def test_a_module_beside_the_job_travels_where_the_remedy_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"beside_the_job_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text("def work(batches): return 'done'\n")
    monkeypatch.syspath_prepend(tmp_path)
    beside = import_module(name)
    by_name = as_text(beside.work)
    cloudpickle.register_pickle_by_value(beside)  # type: ignore[no-untyped-call]
    by_value = as_text(beside.work)
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EnvironmentMismatchError, match=f"No module named '{name}'") as caught:
        FunctionCall.of(UserFunction(by_name, OUTPUT, "batches"))
    assert "register_pickle_by_value" in caught.value.remedy
    assert FunctionCall.of(UserFunction(by_value, OUTPUT, "batches")).function(iter(())) == "done"


@pytest.mark.parametrize(
    ("allowed", "text", "words"),
    [
        pytest.param(None, as_text(len), "", id="no limit: a pickle"),
        pytest.param("json", as_text(json.dumps), "is pickled, and", id="a pickle, even of an allowed module"),
        pytest.param("json", "json:dumps", "", id="the module itself"),
        pytest.param(" acme , json ", "json:dumps", "", id="one of several"),
        pytest.param("json", "json.encoder:py_encode_basestring", "", id="a module of the package"),
        pytest.param("json", "json:encoder.py_encode_basestring", "", id="a function in a module of the package"),
        pytest.param("json", "os:system", "of the module 'os'", id="another module"),
        pytest.param("js", "json:dumps", "of the module 'json'", id="a module that only begins alike"),
        pytest.param("json", "json:codecs.open", "of the module 'codecs'", id="a function of an imported module"),
        pytest.param("json", "json:codecs.sys.exit", "of the module 'sys'", id="further away"),
        pytest.param("", "json:dumps", "leave the option function out", id="no function at all"),
    ],
)
def test_an_administrator_allows_certain_functions(
    monkeypatch: pytest.MonkeyPatch, allowed: str | None, text: str, words: str
) -> None:
    given = BATCH | {"function": text, "functionSchema": "n long"}
    if allowed is None:
        monkeypatch.delenv("COOP_FUNCTIONS", raising=False)
    else:
        monkeypatch.setenv("COOP_FUNCTIONS", allowed)
    if not words:
        assert validate(given, streaming=None).function == text
        return
    with pytest.raises(FunctionNotAllowedError, match="COOP_FUNCTIONS") as caught:
        validate(given, streaming=None)
    assert words in str(caught.value)


def test_nothing_of_a_forbidden_function_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "forbidden_module.py").write_text("raise SystemError('it ran')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COOP_FUNCTIONS", "acme")
    for text in (pickled("cforbidden_module\nf\n."), "forbidden_module:f"):
        with pytest.raises(FunctionNotAllowedError):
            validate(BATCH | {"function": text, "functionSchema": "n long"}, streaming=None)


def pickled(code: str) -> str:
    return base64.b64encode(code.encode()).decode()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"function": "no_such_module:f"}, "No module named 'no_such_module'", id="no such module"),
        pytest.param({"function": "json:no_such"}, "no attribute 'no_such'", id="no such function"),
        pytest.param({"function": "json:__name__"}, "it is of type str, which cannot be called", id="no function"),
        pytest.param({"function": "my_module.f"}, "neither module:function nor", id="no text of ours"),
        pytest.param({"function": ""}, "it cannot be unpickled (EOFError", id="empty"),
        pytest.param({"function": pickled("no pickle")}, "it cannot be unpickled (UnpicklingError", id="no pickle"),
        pytest.param({"function": pickled("cno_such\nf\n.")}, "register_pickle_by_value", id="a pickled module's name"),
        pytest.param({"function": pickled("cjson\nf\n.")}, "register_pickle_by_value", id="another version of it"),
        pytest.param({"function": "no_such_module:f"}, "spark.archives", id="a module beside the job"),
        pytest.param({"function": pickled("cbuiltins\nexit\n(I3\ntR.")}, "(SystemExit: 3)", id="an exit"),
        pytest.param({"function": pickled("cbuiltins\nBaseException\n(tR.")}, "BaseException", id="an exception"),
        pytest.param({"function": "asyncio:sleep"}, "is a coroutine function", id="a coroutine function by name"),
        pytest.param(
            {"function": "operator:add", "functionTakes": "keys", "functionConcurrency": "2000"},
            "takes a thread for each key",
            id="a plain function of too many keys",
        ),
        pytest.param({"function": "os:getcwd"}, "cannot be called as f(batches)", id="by name, without arguments"),
        pytest.param(
            {"function": "json:dumps", "functionTakes": "keys"},
            "f(key, records)",
            id="by name, of one argument",
        ),
        pytest.param({"functionSchema": " "}, "it names no column", id="an empty schema"),
        pytest.param({"functionSchema": '{"type":'}, "it is not the json() of a StructType", id="broken JSON"),
        pytest.param({"functionSchema": StructType().json()}, "it has no field", id="a schema without columns"),
        pytest.param({"functionSchema": None}, "function is set, but not functionSchema", id="no schema"),
        pytest.param({"function": None}, "functionSchema is set, but not function", id="a schema alone"),
        pytest.param({"functionConcurrency": "0"}, "too small", id="no keys at once"),
        pytest.param({"functionConcurrency": "4"}, "the function takes batches", id="batches of many keys at once"),
        pytest.param({"functionTakes": "rows"}, "unknown word", id="another form"),
    ],
)
@pytest.mark.parametrize("streaming", [None, False])
def test_a_wrong_option_is_refused_by_name(
    options: Mapping[str, str | None], words: str, streaming: bool | None
) -> None:
    given = BATCH | {"function": "json:dumps", "functionSchema": "n long"} | dict(options)
    with pytest.raises(ConfigurationError) as caught:
        validate({name: text for name, text in given.items() if text is not None}, streaming=streaming)
    assert words in str(caught.value)
    assert caught.value.remedy
