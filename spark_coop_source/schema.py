"""The rows of the source: exactly those of Spark's Kafka source, all columns nullable.

Knows Spark's types and nothing else.
"""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from coordinator.errors import SchemaMismatchError

SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_WITH_HEADERS = StructType([*SCHEMA.fields, StructField("headers", ArrayType(_HEADER))])


def schema(include_headers: bool) -> StructType:
    """The columns of a row; the last one, `headers`, only with the option `includeHeaders`.

    `headers` is null for a record without headers, not empty.
    """
    return _WITH_HEADERS if include_headers else SCHEMA


def check_user_schema(given: StructType, include_headers: bool) -> None:
    """Raise `SchemaMismatchError` unless `given` has our names and types, in our order; nullability is free."""
    ours = schema(include_headers)
    if _shape(given) != _shape(ours):
        raise SchemaMismatchError(
            f"the schema given is <{given.simpleString()[7:-1]}>, but this source always gives "
            f"<{ours.simpleString()[7:-1]}>",
            "remove .schema(...) and select or cast columns after load()"
            + ("" if include_headers else "; the column headers needs .option('includeHeaders', 'true')"),
        )


def _shape(of: DataType) -> object:
    """Names and types without nullability."""
    if isinstance(of, StructType):
        return [(field.name, _shape(field.dataType)) for field in of.fields]
    return [_shape(of.elementType)] if isinstance(of, ArrayType) else of
