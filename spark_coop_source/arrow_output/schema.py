"""The row schema: the columns of Spark's Kafka source, all nullable, or the user's choice of them.

Knows Spark's types and nothing else.
"""

from collections.abc import Collection

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
_EVERY = StructType([*SCHEMA.fields, StructField("headers", ArrayType(_HEADER))])

PLAIN: tuple[str, ...] = tuple(SCHEMA.names)
EVERY: tuple[str, ...] = tuple(_EVERY.names)
"""All columns of Spark's source, in their order. A row has those of `PLAIN` unless the user asks for others."""

ACKNOWLEDGEMENT = "acknowledgement"
"""The text by which `coordinator.commits.group_commits` commits the row."""

NAMED: tuple[str, ...] = (*EVERY, ACKNOWLEDGEMENT)
"""The columns that users may name, in their order."""


def schema(columns: Collection[str]) -> StructType:
    """A row of these columns, in the order of `NAMED`.

    `headers` is null for a record without headers, not empty.
    """
    every = [*_EVERY, StructField(ACKNOWLEDGEMENT, StringType())]
    return StructType([field for field in every if field.name in columns])


def check_user_schema(given: StructType, columns: Collection[str]) -> None:
    """Raise `SchemaMismatchError` unless `given` has our names and types, in our order. Nullability may differ."""
    ours = schema(columns)
    if _shape(given) != _shape(ours):
        raise SchemaMismatchError(
            f"the query's schema is <{given.simpleString()[7:-1]}>, but the schema of this source is "
            f"<{ours.simpleString()[7:-1]}>",
            "remove .schema(...) and select or cast columns after load()"
            + ("" if "headers" in columns else "; the column headers needs .option('includeHeaders', 'true')"),
        )


def _shape(of: DataType) -> object:
    """Names and types without nullability."""
    if isinstance(of, StructType):
        return [(field.name, _shape(field.dataType)) for field in of.fields]
    return [_shape(of.elementType)] if isinstance(of, ArrayType) else of
