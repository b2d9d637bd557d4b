"""The driver is killed with SIGKILL in the middle of a batch: the batch is replayed exactly, nothing is lost."""

import os
from pathlib import Path

import job_output
import pyspark
from job import Job
from topics import Record
from verdict import judge


def test_a_killed_driver_replays_its_batch_exactly(kafka, redis_url, group, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", os.environ.get("SPARK_HOME", str(Path(pyspark.__file__).parent)))
    topic = kafka.create_topic("killed")
    records = [Record(b"%d" % i, b"plane-%d" % (i % 300) if i % 11 else None) for i in range(60_000)]
    kafka.produce(topic, records)
    job = Job(kafka.bootstrap, topic, group, redis_url, tmp_path, per_batch=15_000)
    job.kill_in_a_batch(job.start(), lambda: None)
    done = [b.name for b in job_output.finished_batches(job.output)]
    assert "batch=0" in done
    assert len(done) < 4
    job.finish(job.start(), lambda: None)
    deliveries = [d for b in job_output.finished_batches(job.output) for d in job_output.deliveries(b)]
    sent = [(r.key and r.key.decode(), r.value.decode()) for r in records]
    assert judge(sent, deliveries).good
