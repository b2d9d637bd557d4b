"""The kinds of option value of the function inside the read: a function as text, and the schema of its rows."""

import json
from dataclasses import dataclass

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import quoted
from spark_coop_source.function.user_function import IMPORT_REMEDY, UnimportableError, is_name
from spark_coop_source.options.allowed_functions import loaded_if_allowed


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function as text, loaded here as a test: if the driver's host cannot load it, a task cannot either."""

    limit: str = "what map_records, map_keys or map_batches makes, or the name of a function as module:function"

    def parse(self, text: str) -> str:
        """The text itself; raises `FunctionNotAllowedError` where the driver's environment forbids the function."""
        try:
            loaded_if_allowed(text)
        except UnimportableError as error:
            shown = f" = {quoted(text)}" if is_name(text) else ""
            raise InvalidOptionError(f"option function{shown}: {error}", IMPORT_REMEDY) from None
        return text


@dataclass(frozen=True, slots=True)
class RowSchema:
    """Column names and types, as DDL or as the JSON of a StructType."""

    limit: str = "columns like key binary, n long, or the json() of a StructType"

    def parse(self, text: str) -> StructType | str:
        """The schema. DDL stays text: only Spark can parse it, and does so when it builds the query."""
        if not text.strip():
            raise ValueError("it names no column")
        if not text.lstrip().startswith("{"):
            return text
        try:
            schema = StructType.fromJson(json.loads(text))
            to_arrow_schema(schema, timezone="UTC")
            if not schema.fields:
                raise ValueError("it has no field")
        except Exception as error:  # pyspark raises many types for JSON that is not a schema
            raise ValueError(f"it is not the json() of a StructType whose types Arrow has ({error})") from error
        return schema
