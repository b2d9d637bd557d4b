"""The Python of docs/commit-api.md, executed as it stands there; only the address and the topic are put in."""

import re
from typing import cast

import pytest

from acknowledgements import text_of
from broker_jars import ROOT
from coordinator import errors
from coordinator.commits.commit_api import Committed
from coordinator.commits.group_commits import GroupCommits
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import TopicPartition
from documented import blocks, program
from group_services import Group, batch, subscribed
from streams import keyed

PAGE = (ROOT / "docs" / "commit-api.md").read_text()
CODE = [code for code in blocks("docs/commit-api.md", "python") if not program(code)]


def test_the_python_of_the_page_has_the_results_that_the_page_shows(members: Group, tp: TopicPartition) -> None:
    members.kafka.produce(tp.topic, keyed(35, 5))
    service = members.service(subscribed(tp), session_ms=60_000)
    service.first_positions()
    before = batch(service, StreamOffset(members.name))
    members.kafka.produce(tp.topic, keyed(20, 40))
    end = batch(service, before)
    with GroupCommits.of_group(members.redis_url, members.name) as commits:
        assert commits.acknowledge(text_of(end, tp, covered) for covered in ("40-40", "41-41")) == {tp: 42}
    texts = [text_of(end, tp, covered) for covered in ("42-42", "43-44")]
    names: dict[str, object] = {"end_offset": end.to_json(), "texts": texts}
    shown: list[str] = []
    for code in CODE:
        here = code.replace("redis://localhost:6379/0", members.redis_url).replace('"orders"', f'"{tp.topic}"')
        here = here.replace("orders-to-lake", members.name)
        exec(here, names)  # it is our own page
        with members.client.reading() as redis:
            shown.append(" ".join(redis.hgetall(GroupKeys(members.name).ics(tp)).values()))
    assert shown == ["", "45-47 50-50", "45-50 53-53", "53-53"]
    assert cast(Committed, names["answer"]) == Committed(42, 2, 0, ())


@pytest.mark.parametrize("name", re.findall(r"`(\w+Error)`", PAGE))
def test_every_error_of_the_page_exists(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.CoopKafkaError)
