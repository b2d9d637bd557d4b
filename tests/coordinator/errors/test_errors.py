"""The error tree: names and codes are a contract with programs and log searches."""

import ast
import pickle
from collections.abc import Iterator

import pytest

from broker_jars import ROOT
from coordinator import errors
from coordinator.errors import CoopKafkaError, InvalidAssignmentError
from coordinator.errors.quoting import MESSAGE


def leaves(kind: type[CoopKafkaError]) -> Iterator[type[CoopKafkaError]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from leaves(sub)


@pytest.mark.parametrize("kind", [*dict.fromkeys(leaves(CoopKafkaError))])
def test_a_message_is_bounded_and_keeps_its_head_its_tail_and_its_length(kind: type[CoopKafkaError]) -> None:
    error = kind("first" + "x" * 5_000_000 + "last", "do" + "y" * 5_000_000)
    assert len(str(error)) <= 2 * MESSAGE + 100
    assert error.what.startswith("firstx")
    assert "(5000009 characters)" in error.what
    assert error.what.endswith("xlast")
    assert error.args[:2] == (error.what, error.remedy)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_no_two_errors_share_a_name() -> None:
    names = [kind.name for kind in {*leaves(CoopKafkaError)}]
    assert sorted(names) == sorted({*names})


def test_every_error_can_be_imported_from_the_package() -> None:
    assert [kind.__name__ for kind in {*leaves(CoopKafkaError)} if vars(errors).get(kind.__name__) is not kind] == []


def test_an_error_without_a_remedy_has_the_usual_one_of_its_class() -> None:
    assert errors.UnknownGroupError("it is gone").remedy == errors.UnknownGroupError.usual_remedy


def test_an_error_without_a_usual_remedy_is_raised_with_one() -> None:
    names = {kind.__name__ for kind in leaves(CoopKafkaError) if not kind.usual_remedy}
    for file in (ROOT / "coordinator").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names:
                assert len(call.args) + len(call.keywords) > 1, f"{file}:{call.lineno}"


def test_a_range_for_a_member_that_does_not_share_is_an_invalid_assignment_too() -> None:
    assert issubclass(errors.ConsumerRangeFetchNotAcceptedError, InvalidAssignmentError)
