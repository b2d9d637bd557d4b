"""The README's code and commands, and the docs' code, executed as they stand; only names of servers are put in.

`scripts/test` itself is left out; `scripts/demo` is run by test_demo, with fewer rows.
"""

import re
import uuid
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from broker_jars import ROOT
from documented import WAY, Place, blocks, commands, program
from topics import Kafka

README = (ROOT / "README.md").read_text()
BEGINNING = ("README.md", "docs/getting-started.md")
JOB_TO_COPY = (ROOT / "scripts" / "flights_job.py").read_text()
MORE = ("applications", "failing-records", "functions", "migrate", "ordering")
PAGES = (*BEGINNING, *(f"docs/{name}.md" for name in MORE))


def samples(page: str) -> list[str]:
    """The Python of a page, but for what test_jobs and test_ways_into_spark run.

    A first block of `servers` is a part of each of the others, `on_error` one of the first.
    """
    first, *others = [code for code in blocks(page, "python") if not (program(code) or WAY.search(code))] or [""]
    if first.removeprefix("import os\n\n").startswith("servers = "):
        return [f"{first}\n{each}" for each in others]
    return [first, *(with_on_error(first, each) if each.startswith("on_error = ") else each for each in others)]


def with_on_error(sample: str, line: str) -> str:
    """A sample with another line `on_error`."""
    before, old, after = re.split(r"^(on_error = .*\n)", sample, flags=re.MULTILINE)
    assert old != line
    return before + line + after


PYTHON = [code for page in PAGES for code in samples(page) if "import pytest" not in code]
BEGUN_WITH = {code for page in BEGINNING for code in samples(page)}
(TESTS,) = (code for code in blocks("docs/functions.md", "python") if "import pytest" in code)
SENDING = [c for c in PYTHON if "KafkaProducer" in c]
JOBS = [c for c in PYTHON if "SparkSession" in c]
READING = [c for c in PYTHON if c and c not in SENDING and c not in JOBS and "def assign" not in c]
OUTPUT = re.compile(r'\.(?:start|write.mode\("append"\).parquet)\("([^"]+)"\)')
A_PART = "[[0,"
"""Code that reads some key hashes only."""
COMMANDS = [command for page in BEGINNING for command in commands(page)]
# This run, what sets it up, test_build_site, test_ways_into_spark and test_demo.
ELSEWHERE = (
    "spark-pipelines ",
    "scripts/test",
    "scripts/site",
    'pip install ".[spark]"',
    "source .venv",
    "export COOP_",
    "scripts/demo",
)


def with_word(word: str) -> list[str]:
    found = [c.strip() for c in COMMANDS if word in c]
    assert found, f"neither the README nor docs/getting-started.md shows {word}"
    return found


def test_every_command_of_the_readme_is_run_here() -> None:
    known = ("spark-submit", "coop-kafka describe", "python first_job.py", *ELSEWHERE)
    assert [c for c in COMMANDS if not c.strip().startswith(known)] == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(c, id=c.strip().splitlines()[-1][:60], marks=() if c in BEGUN_WITH else pytest.mark.long)
        for c in READING
    ],
)
def test_the_python_of_the_readme_runs(spark: SparkSession, kafka: Kafka, place: Place, code: str) -> None:
    code = re.sub(r'"(checkpoints|lake)/', rf'"{place.folder}/\1/', place.put_in(code))
    code = code.replace("orders-to-", f"{place.options['group']}-").replace("orders-dead", kafka.create_topic("dead"))
    names: dict[str, object] = {"spark": spark}
    exec(code, names)  # it is our own README
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    written = [spark.read.parquet(folder).count() for folder in OUTPUT.findall(code)]
    read = [rows.count() for rows in names.values() if isinstance(rows, DataFrame) and not rows.isStreaming]
    assert all(0 < count < 50 if A_PART in code else count == 50 for count in written)
    assert all(count == 50 for count in read)
    assert written or read or "register" in code or "assert" in code


def test_the_topic_to_begin_with_has_one_partition_of_a_thousand_records(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = SENDING
    monkeypatch.setenv("COOP_KAFKA", kafka.bootstrap)
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    exec(code.replace('"orders"', f'"{topic}"'), {})
    with closing(KafkaConsumer(bootstrap_servers=kafka.bootstrap)) as consumer:
        assert consumer.partitions_for_topic(topic) == {0}
        assert consumer.end_offsets([TopicPartition(topic, 0)]) == {TopicPartition(topic, 0): 1_000}


@pytest.mark.long
def test_the_first_job_shows_four_tasks_on_one_partition_and_nothing_the_second_time(place: Place) -> None:
    """Once with the log that docs/monitoring.md asks for."""
    (job,) = JOBS
    (place.folder / "first_job.py").write_text(place.put_in(job))
    (command,) = with_word("first_job.py")
    (with_log,) = (each for each in commands("docs/monitoring.md") if each.startswith("COOP_LOG_"))
    row = re.compile(r"^\|\s*\d+\|\s*(\d+)\|$", re.MULTILINE)
    printed = place.run(f"bash -c '{with_log} 2>&1'")
    assert " INFO coordinator.batches: group " in printed
    counts = [int(count) for count in row.findall(printed)]
    assert (len(counts), sum(counts)) == (4, 50)
    assert not row.findall(place.run(command)), "the group has read everything"


@pytest.mark.long
def test_the_tests_of_a_users_job_pass(place: Place) -> None:
    """On the servers of these tests, as COOP_KAFKA and COOP_REDIS are set."""
    code = TESTS.replace('"orders"', f'"orders-{uuid.uuid4().hex[:8]}"')
    (place.folder / "test_orders.py").write_text(code.replace("orders-to-memory", place.options["group"]))
    assert "1 passed" in place.run("python -m pytest -q -p no:cacheprovider test_orders.py")


def test_the_job_to_copy_leaves_lanes_free_to_be_cut() -> None:
    assert "slots" in JOB_TO_COPY
    assert "lanes" not in JOB_TO_COPY, "a fixed number of lanes keeps a slow key among others"


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= 720


def test_every_link_of_the_readme_and_of_the_pages_leads_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    assert [(page.name, link) for page, link in links if "://" not in link and not _leads(page, link)] == []


def _leads(page: Path, link: str) -> bool:
    """Whether a link names a file that is there, and a heading or an anchor in it."""
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    if not anchor or not target.is_file():
        return target.exists()
    if f'<a id="{anchor}"></a>' in target.read_text():
        return True
    headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
    return anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.long
def test_the_job_of_the_readme_runs_and_can_be_described(place: Place) -> None:
    (submit,) = with_word("spark-submit")
    place.run(submit)
    assert list((place.folder / "out").glob("query=*/batch=0/*.parquet"))
    (describe,) = with_word("coop-kafka describe")
    shown = place.run(describe)
    assert place.topic[:10] in shown
