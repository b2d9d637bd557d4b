"""A function travels as text, and what is wrong with the text is told before a query exists."""

import base64
import json
import threading
from collections.abc import Mapping

import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from coordinator.errors import ConfigurationError, InvalidOptionError
from spark_coop_source.function.user_function import as_text, loaded
from spark_coop_source.map_in_read import map_in_read
from spark_coop_source.options.options import validate

BATCH = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}
OUTPUT = StructType([StructField("key", BinaryType()), StructField("n", LongType())])


def test_a_closure_comes_back_as_it_was() -> None:
    rate = 3
    assert loaded(as_text(lambda n: n * rate))(5) == 15


def test_a_name_is_looked_up_also_within_a_class() -> None:
    assert loaded("json:dumps") is json.dumps
    assert loaded("json:JSONEncoder.encode") is json.JSONEncoder.encode


def test_the_helper_gives_options_that_are_understood() -> None:
    options = validate(BATCH | map_in_read(len, schema=OUTPUT, per_key=True, concurrency=16), streaming=False)  # type: ignore[arg-type]
    assert (options.function_output, options.function_per_key, options.function_concurrency) == (OUTPUT, True, 16)
    assert loaded(options.function or "") is len


def test_ddl_stays_text_for_spark_alone_can_parse_it() -> None:
    options = validate(BATCH | map_in_read("json:dumps", schema="key binary, n long"), streaming=None)
    assert options.function_output == "key binary, n long"


def test_what_cannot_be_pickled_is_told_where_the_function_is_given() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidOptionError, match="cannot be pickled") as caught:
        map_in_read(lambda batches: lock, schema=OUTPUT)  # type: ignore[arg-type]
    assert "open such things inside it" in caught.value.remedy


def pickled(code: str) -> str:
    return base64.b64encode(code.encode()).decode()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"mapInRead": "no_such_module:f"}, "No module named 'no_such_module'", id="no such module"),
        pytest.param({"mapInRead": "json:no_such"}, "no attribute 'no_such'", id="no such function"),
        pytest.param({"mapInRead": "json:__name__"}, "it is of type str, which cannot be called", id="no function"),
        pytest.param({"mapInRead": "my_module.f"}, "neither module:function nor", id="no text of ours"),
        pytest.param({"mapInRead": ""}, "it cannot be unpickled (EOFError", id="empty"),
        pytest.param({"mapInRead": pickled("no pickle")}, "it cannot be unpickled (UnpicklingError", id="no pickle"),
        pytest.param({"mapInRead": pickled("cno_such\nf\n.")}, "(ModuleNotFoundError: No module", id="a module"),
        pytest.param({"mapInRead.schema": " "}, "it names no column", id="an empty schema"),
        pytest.param({"mapInRead.schema": '{"type":'}, "it is not the json() of a StructType", id="broken JSON"),
        pytest.param({"mapInRead.schema": StructType().json()}, "it has no field", id="a schema without columns"),
        pytest.param({"mapInRead.schema": None}, "mapInRead is given, but not mapInRead.schema", id="no schema"),
        pytest.param({"mapInRead": None}, "mapInRead.schema is given, but not mapInRead", id="a schema alone"),
        pytest.param({"mapInRead.concurrency": "0"}, "too small", id="no keys at once"),
        pytest.param(
            {"mapInRead.concurrency": "4"}, "there is no function of one key", id="batches of many keys at once"
        ),
        pytest.param({"mapInRead.perKey": "yes"}, "neither true nor false", id="no switch"),
    ],
)
@pytest.mark.parametrize("streaming", [None, False])
def test_what_is_wrong_is_refused_by_name(
    options: Mapping[str, str | None], words: str, streaming: bool | None
) -> None:
    given = BATCH | {"mapInRead": "json:dumps", "mapInRead.schema": "n long"} | dict(options)
    with pytest.raises(ConfigurationError) as caught:
        validate({name: text for name, text in given.items() if text is not None}, streaming=streaming)
    assert words in str(caught.value)
    assert caught.value.remedy
