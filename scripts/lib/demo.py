"""The demo: one Kafka partition with real records, four Spark tasks on it at once, and a verdict.

Combines the modules beside this one, and prints the progress.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

import job_output
import processes
import servers
from coordinator.errors import redacted
from display import BatchProgress, lane_table
from flights import flights
from job import FLIGHTS_JOB, SLOTS, Job
from topics import Kafka

BATCHES = 8
FLIGHTS = 336_776
COMMAND = Path(sys.executable).with_name("coop-kafka")
console = Console(highlight=False, soft_wrap=True)


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo",
        description="Four Spark tasks share one Kafka partition: every flight once, each plane's flights in order.",
        epilog="COOP_KAFKA=host:port and COOP_REDIS=url name servers to use; without them the demo starts its own.",
    )
    parser.add_argument("--rows", type=_rows, default=FLIGHTS, metavar="N", help="only the first N flights")
    parser.add_argument("--crash", action="store_true", help="kill the driver with SIGKILL in the middle of a batch")
    parser.add_argument("--keep", action="store_true", help="keep servers and output, and print how to inspect them")
    return parser.parse_args()


def _rows(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= FLIGHTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {FLIGHTS}")
    return int(text)


def main() -> int:
    """Run the demo; returns the exit code: 0 for a good verdict, 1 for a bad one or an error, 130 after Ctrl-C."""
    wanted = arguments()
    stack = ExitStack()
    try:
        with processes.ending_politely():
            return 0 if _show(wanted, stack) else 1
    except KeyboardInterrupt:
        console.print("Stopping ...")
        return 130
    except RuntimeError as error:
        console.print("The demo failed:", str(error), style="red", markup=False)
        return 1
    finally:
        with processes.undisturbed():
            stack.close()


def _show(wanted: argparse.Namespace, stack: ExitStack) -> bool:
    """Run the demo; whether its verdict is good."""
    folder = Path(tempfile.mkdtemp(prefix="coop-kafka-demo-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    stack.callback(processes.kill_children)
    kafka = servers.kafka(folder, outlives_parent=wanted.keep)
    stack.callback(kafka.stop)
    redis = servers.valkey(folder, outlives_parent=wanted.keep)
    stack.callback(redis.stop)
    console.print(f"Kafka at {kafka.address}, Redis at {redacted(redis.address)}")

    sent = flights(wanted.rows)
    topics = Kafka(kafka.address)
    topic = topics.create_topic("flights")
    if kafka.process is None:
        stack.callback(topics.delete_topic, topic)
    topics.produce(topic, sent, compression="lz4")
    console.print(f"{len(sent):,} flights in topic {topic}, all in one partition; {SLOTS} tasks will share it")

    group = f"demo-{uuid.uuid4().hex[:6]}"
    job = Job(kafka.address, topic, group, redis.address, folder, per_batch=-(-len(sent) // BATCHES))
    seconds = _run(job, wanted.crash, len(sent), stack)
    _describe(job)
    _report(job, seconds)
    good = _audit(job, len(sent))
    if wanted.keep:
        stack.pop_all()
        _print_how_to_look(job, kafka, redis)
    return good


def _run(job: Job, crash: bool, rows: int, stack: ExitStack) -> float:
    """Run the job to the end of the topic; returns the seconds since it wrote its first row."""
    with BatchProgress(job.output, rows, console) as bar:
        process = _start(job, stack)
        if crash:
            batch = job.kill_in_a_batch(process, bar.update)
            console.print(f"[red]Killed[/red] the driver and all its children in the middle of batch {batch}")
            process = _start(job, stack)
        job.finish(process, bar.update)
        return bar.seconds


def _start(job: Job, stack: ExitStack) -> subprocess.Popen[bytes]:
    console.print("Starting Spark; its first batch takes a while ...")
    process = job.start()
    stack.callback(processes.stop, process)
    return process


def _describe(job: Job) -> None:
    """The lanes as `coop-kafka describe` shows them."""
    subprocess.run([COMMAND, "describe", job.group], env=_environment(job), check=False)
    console.print("One range: all lanes are done to the same offset now, so one position is enough. During the run:")


def _environment(job: Job) -> dict[str, str]:
    return {**os.environ, "COOP_REDIS": job.redis_url, "COOP_KAFKA": job.bootstrap}


def _report(job: Job, seconds: float) -> None:
    batches = job_output.finished_batches(job.output)
    received = [each for batch in batches for each in job_output.deliveries(batch)]
    console.print(lane_table(received, SLOTS))
    tasks = len({each.input_partition for each in received})
    rate = f"{len(received) / seconds:,.0f} rows/s" if seconds else "no rows"
    console.print(f"{len(received):,} rows in {len(batches)} batches, up to {tasks} tasks at once, {rate}")


def _audit(job: Job, sent: int) -> bool:
    """The verdict of `coop-kafka audit`: whether the output has every record that was sent, once and in order."""
    command = [str(COMMAND), *_audit_words(job)]
    done = subprocess.run(command, env=_environment(job), stdout=subprocess.PIPE, text=True, check=False)
    good = done.returncode == 0 and done.stdout.startswith(f"{sent:,} records done, each exactly once in the sink")
    console.print(done.stdout.rstrip(), style="bold green" if good else "bold red", markup=False)
    return good


def _audit_words(job: Job) -> list[str]:
    return ["audit", job.group, "--topic", job.topic, "--sink", f"parquet:{job.output}"]


def _print_how_to_look(job: Job, kafka: servers.Server, redis: servers.Server) -> None:
    own = [str(server.process.pid) for server in (kafka, redis) if server.process is not None]
    named = {"COOP_KAFKA": kafka, "COOP_REDIS": redis}
    ours = [f"{name}={server.address}" for name, server in named.items() if server.process is not None]
    print("Left for you to look at:")
    if ours:
        print(f"  export {' '.join(ours)}")
    print(f"  {COMMAND} describe {job.group}")
    print(f"  {COMMAND} {shlex.join(_audit_words(job))}")
    if shutil.which("redis-cli"):
        print(f"""  redis-cli -u "$COOP_REDIS" HGETALL 'coop:v1:{{{job.group}}}:stable:{job.topic}'""")
        print(f"""  redis-cli -u "$COOP_REDIS" XRANGE 'coop:v1:{{{job.group}}}:events' - +""")
    print(f"  ls {job.output}/*")
    print("To read the topic again, by a group of its own:")
    print(f"  {_submit(job)}")
    print("To end it: " + (f"kill {' '.join(own)} && sleep 3 && " if own else "") + f"rm -r {job.folder}")


def _submit(job: Job) -> str:
    """The command that runs the job again, to be copied; the Redis is in COOP_REDIS."""
    again = replace(job, group=f"{job.group}-again", folder=job.folder / "again")
    words = ["spark-submit", "--master", f"local[{SLOTS}]", str(FLIGHTS_JOB), *again.words]
    activate = COMMAND.with_name("activate")
    return f"source {activate} && PYSPARK_PYTHON={sys.executable} {shlex.join(words)}"


if __name__ == "__main__":
    sys.exit(main())
