"""The user's function of `mapInRead`: as text in an option, as a value on its way, as something to call.

Knows how a function travels; nothing of records. Used where the user writes (`map_in_read`), where options are
checked, and in executors.
"""

import base64
import binascii
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter

from pyspark import cloudpickle
from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class UserFunction:
    """What runs inside `read`: the function, the rows it makes, and how it is called."""

    text: str = field(repr=False)  # module:function, or a pickle in base64
    output: StructType
    per_key: bool
    concurrency: int  # keys at once, inside one task


def as_text(function: Callable[..., object]) -> str:
    """The function pickled by Spark's cloudpickle, in base64: what `loaded` takes. Raises what pickling raises."""
    return base64.b64encode(cloudpickle.dumps(function)).decode()  # type: ignore[no-untyped-call]


def loaded(text: str) -> Callable[..., object]:
    """The function of a text; a `ValueError` says why there is none in this process."""
    found = _named(text) if ":" in text else _unpickled(text)
    if not callable(found):
        raise ValueError(f"it is of type {type(found).__name__}, which cannot be called")
    return found


def _named(text: str) -> object:
    module, _, name = text.partition(":")
    try:
        return attrgetter(name)(import_module(module))
    except Exception as error:  # a module runs what its author wrote
        raise ValueError(f"it cannot be imported ({type(error).__name__}: {error})") from error


def _unpickled(text: str) -> object:
    try:
        pickled = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("it is neither module:function nor what map_in_read gives") from None
    try:
        return pickle.loads(pickled)  # noqa: S301 - the query's author wrote it, who runs code here anyway
    except Exception as error:  # unpickling runs anything
        raise ValueError(f"it cannot be unpickled ({type(error).__name__}: {error})") from error
