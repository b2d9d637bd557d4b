"""The wording of every error, in one file: `messages.txt` beside this one.

Other tests assert an error's name and what it names. If you change a message on purpose, run this file with
COOP_MESSAGES=write, and read the difference.
"""

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from broker_jars import ROOT
from coordinator.errors import CoopKafkaError

GOLDEN = Path(__file__).with_name("messages.txt")


def names(kind: type[CoopKafkaError] = CoopKafkaError) -> Iterator[tuple[str, str]]:
    """Each class of errors of ours with the name that people see."""
    yield kind.__name__, kind.name
    for sub in kind.__subclasses__():
        yield from names(sub)


def worded(node: ast.expr) -> str:
    """A text of the source, with {expressions} where values go."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(worded, parts))
        case ast.FormattedValue(value=value):
            return f"{{{_source(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return worded(left) + worded(right)
        case _:
            return f"{{{_source(node)}}}"


def _source(node: ast.expr) -> str:
    return ast.unparse(node).replace('"', "'")  # each Python chooses others for nested texts


def messages() -> Iterator[str]:
    """A line for each place that makes an error."""
    known = dict(names())
    for package in ("coordinator", "spark_coop_source"):
        for file in (ROOT / package).rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text())):
                if isinstance(call, ast.Call) and call.args and not isinstance(call.args[0], ast.Starred):
                    name = getattr(call.func, "id", None) or getattr(call.func, "attr", "")
                    if name in known:
                        yield f"{known[name]}: " + " -> ".join(" ".join(worded(a).split()) for a in call.args[:2])


def test_the_wording_of_each_error_is_that_of_the_file() -> None:
    found = "".join(f"{line}\n" for line in sorted({*messages()}))
    if os.environ.get("COOP_MESSAGES") == "write":
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text(), "COOP_MESSAGES=write writes the file anew"
