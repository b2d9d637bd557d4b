"""Rows: the columns of Spark's Kafka source, and no others."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from coordinator.errors import SchemaMismatchError
from spark_coop_source.arrow_output.schema import EVERY, PLAIN, SCHEMA, check_user_schema, schema

COLUMNS = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
)


def test_a_row_has_the_columns_of_sparks_kafka_source_all_nullable() -> None:
    assert schema(PLAIN).simpleString() == f"{COLUMNS}>"
    assert schema(EVERY).simpleString() == f"{COLUMNS},headers:array<struct<key:string,value:binary>>>"
    headers = schema(EVERY)["headers"].dataType
    assert isinstance(headers, ArrayType)
    assert headers.containsNull
    assert isinstance(headers.elementType, StructType)
    assert all(field.nullable for field in [*schema(EVERY), *headers.elementType])


def test_the_same_schema_with_other_nullability_is_accepted() -> None:
    strict = StructType([StructField(field.name, field.dataType, nullable=False) for field in SCHEMA])
    header = StructType([StructField("key", StringType(), nullable=False), StructField("value", BinaryType())])
    check_user_schema(strict, PLAIN)
    check_user_schema(StructType([*strict, StructField("headers", ArrayType(header, containsNull=False))]), EVERY)


REORDERED = StructType([SCHEMA["value"], SCHEMA["key"], *SCHEMA.fields[2:]])
WITH_MAP = StructType([*SCHEMA, StructField("headers", MapType(StringType(), BinaryType()))])


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        pytest.param(StructType([StructField("value", StringType())]), False, id="only a value, as text"),
        pytest.param(StructType(SCHEMA.fields[:-1]), False, id="a column is missing"),
        pytest.param(REORDERED, False, id="another order"),
        pytest.param(StructType([*SCHEMA, StructField("extra", LongType())]), False, id="a column too many"),
        pytest.param(schema(EVERY), False, id="headers without the option"),
        pytest.param(SCHEMA, True, id="the option without headers"),
        pytest.param(WITH_MAP, True, id="headers of another type"),
        pytest.param(
            StructType([*SCHEMA.fields[:5], StructField("Timestamp", TimestampType()), SCHEMA["timestampType"]]),
            False,
            id="a name in another case",
        ),
        pytest.param(
            StructType([*SCHEMA.fields[:4], StructField("offset", IntegerType()), *SCHEMA.fields[5:]]),
            False,
            id="a narrower type",
        ),
        pytest.param(StructType([]), False, id="no columns"),
    ],
)
def test_any_other_schema_is_refused_with_ours(given: StructType, headers: bool) -> None:
    with pytest.raises(SchemaMismatchError) as refused:
        check_user_schema(given, EVERY if headers else PLAIN)
    assert f"<{COLUMNS.removeprefix('struct<')}" in refused.value.what
    assert "after load()" in refused.value.remedy


def test_rows_have_the_chosen_columns_in_their_usual_order_and_the_users_schema_may_match() -> None:
    some = StructType([SCHEMA["key"], SCHEMA["offset"]])
    assert schema(("offset", "key")) == some
    check_user_schema(some, ("offset", "key"))
    with pytest.raises(SchemaMismatchError, match="key:binary,offset:bigint"):
        check_user_schema(SCHEMA, ("offset", "key"))
