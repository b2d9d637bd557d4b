"""The log of Spark's file sink: files of each batch, compacted ones, deleted ones, and texts that are none."""

import json
from collections.abc import Mapping, Sequence

import pytest

from coordinator.errors import SinkError
from coordinator.tools.audit.file_log import SinkFile, committed, task_of


def entry(*paths: str, action: str = "add") -> str:
    return "".join("\n" + json.dumps({"path": path, "action": action}) for path in paths)


def found(files: Mapping[str, str]) -> dict[str, SinkFile]:
    return dict(committed(files, lambda name: "v1" + files[name]))


A, B, C = (f"file:///out/part-0000{n}-{name}-c000.snappy.parquet" for n, name in enumerate("abc"))


def names(*paths: str) -> Sequence[str]:
    return [path.rpartition("/")[2] for path in paths]


def test_each_file_has_the_batch_that_committed_it() -> None:
    a, b, c = names(A, B, C)
    assert found({"0": entry(A, B), "2": entry(C)}) == {
        a: SinkFile(0, "0"),
        b: SinkFile(0, "0"),
        c: SinkFile(1, "2"),
    }


def test_batches_ascend_as_numbers() -> None:
    a, b = names(A, B)
    assert [found({"10": entry(B), "9": entry(A)})[name].step for name in (a, b)] == [0, 1]


def test_files_of_a_compacted_log_stay_in_order_and_earlier_files_of_the_log_are_in_it() -> None:
    a, b, c = names(A, B, C)
    assert found({"8": entry(A), "9.compact": entry(A, B), "10": entry(C)}) == {
        a: SinkFile(0, "<=9", several=True),
        b: SinkFile(1, "<=9", several=True),
        c: SinkFile(2, "10"),
    }


def test_files_that_one_task_may_have_written_side_by_side_stay_together() -> None:
    left, right = "file:///out/day=2/part-00000-a.c000.parquet", "file:///out/day=1/part-00000-b.c000.parquet"
    again, more = "file:///out/day=1/part-00000-d.c000.parquet", "file:///out/day=1/part-00000-e.c001.parquet"
    steps = [each.step for each in found({"9.compact": entry(left, right, again, more)}).values()]
    assert steps == [0, 0, 1, 1]


def test_deleted_files_and_other_names_are_left_out() -> None:
    text = entry(A, B) + entry(A, action="delete")
    assert [*found({"0": text, ".0.crc": "", "tmp": ""})] == names(B)


@pytest.mark.parametrize("text", ["\n{", "\n[]", '\n{"path": "x"}', "\n" + "[" * 100_000])
def test_another_text_is_an_error(text: str) -> None:
    with pytest.raises(SinkError, match="_spark_metadata/0 is not a file of the log"):
        found({"0": text})


def test_the_task_is_in_the_name_of_a_file() -> None:
    assert (task_of("part-00012-f.parquet"), task_of("rows.parquet")) == (12, None)
