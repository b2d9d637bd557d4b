"""Options as an attacker, a tired user or a broken template writes them: each row ends in a named error at once.

Every message names what to do, is bounded, shows control characters escaped and no secret (`hunter2` below).
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.errors import ConfigurationError
from coordinator.errors.quoting import has_control_character
from spark_coop_source.options.options import validate

SECRET = "hunter2"
BROKER = {"kafka.bootstrap.servers": "broker:9092"}
BATCH = {**BROKER, "subscribe": "orders"}
STREAM = {**BATCH, "group": "g", "redisUrl": "redis://localhost:6379"}
STANDALONE = {**BROKER, "assign": '{"orders":[0]}'}
LOGIN = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"}
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"
ESCAPE = "\x1b]0;owned\x07"
MOST = 2_000
"""Characters of the whole error; a value of one is cut at 200."""


class Row(NamedTuple):
    """A case: its name, the options beside `base`, the error's name, and words of its message and its remedy."""

    case: str
    given: Mapping[str, str | None]
    name: str
    words: str
    remedy: str
    base: Mapping[str, str] = STREAM
    streaming: bool | None = True


INVALID, UNKNOWN, CONFLICT, MISSING = "INVALID_OPTION", "UNKNOWN_OPTION", "CONFLICTING_OPTIONS", "MISSING_OPTION"


def bad(case: str, option: str, value: str, words: str, remedy: str, **more: str) -> Row:
    """A row of one value that cannot be used."""
    return Row(case, {option: value, **more}, INVALID, words, remedy)


def assigned(case: str, value: str, words: str, remedy: str = "to JSON with partitions") -> Row:
    """A row of the option `assign`."""
    return Row(case, {"assign": value}, INVALID, words, remedy, STANDALONE)


def login(case: str, config: str, words: str) -> Row:
    """A row of a JAAS text that holds the secret."""
    return bad(case, "kafka.sasl.jaas.config", config, words, "username=", **LOGIN)


def labels(count: int) -> str:
    """So many labels."""
    return ",".join(f"l{i}=" for i in range(count))


def tls(case: str, words: str, remedy: str, **given: str) -> Row:
    """A row of `kafka.ssl.*` options, with _ for the dots."""
    named = {f"kafka.ssl.{name.replace('_', '.')}": value for name, value in given.items()}
    return Row(case, {"kafka.security.protocol": "SSL", **named}, INVALID, words, remedy)


NAMES = [
    Row("a name nobody knows", {"frobnicate": "1"}, UNKNOWN, "option frobnicate does not exist", "docs/options.md"),
    Row("a name of Kafka without its prefix", {"client.id": "x"}, UNKNOWN, "client.id", "did you mean kafka.client.id"),
    Row("a name with an underscore", {"redis_urll": "x"}, UNKNOWN, "redis_urll", "did you mean redisUrl"),
    Row("the prefix alone", {"kafka.": "x"}, UNKNOWN, "option kafka. does not exist", "docs/options.md"),
    Row("no name at all", {"": "x"}, UNKNOWN, "option '' does not exist", "docs/options.md"),
    Row(
        "a family of Kafka without its prefix",
        {"config.providers.x": "y"},
        UNKNOWN,
        "config.providers.x",
        "mean kafka.config",
    ),
    Row("another such family", {"sasl.oauthbearer.scope": "y"}, UNKNOWN, "sasl.oauthbearer.scope", "mean kafka.sasl"),
    Row("a config provider", {"kafka.config.providers.x": "y"}, INVALID, "providers.x is not", "resolve secrets"),
    Row("a token endpoint", {"kafka.sasl.oauthbearer.x": "y"}, INVALID, "oauthbearer.x is not", "logs in with PLAIN"),
    Row("a family with an escape", {f"kafka.config.providers.{ESCAPE}": "y"}, INVALID, r"\x1b]0;owned", "resolve"),
    Row("an escape in a name", {ESCAPE: "y"}, UNKNOWN, r"option '\x1b]0;owned\x07' does not exist", "docs/options.md"),
    Row(
        "a password in a name",
        {f"redis://u:{SECRET}@h": "y"},
        UNKNOWN,
        "option (not shown) does not exist",
        "docs/options.md",
    ),
    Row("five million characters of a name", {"x" * 5_000_000: "y"}, UNKNOWN, "(5000000 characters)", "docs"),
    Row("a name ten thousand times", {"kafka." + "group.id" * 10_000: "y"}, UNKNOWN, "(80006 characters)", "docs"),
    Row("a path given to load", {"path": "/data"}, UNKNOWN, "path", "load() without a path"),
    Row("the topic of Spark's sink", {"topic": "orders"}, UNKNOWN, "topic", "the option subscribe names"),
    Row("an option of CREATE TABLE", {"option.subscribe": "t"}, UNKNOWN, "option.subscribe", "CREATE TEMPORARY VIEW"),
    Row("commits by Kafka", {"kafka.enable.auto.commit": "true"}, INVALID, "auto.commit is not supported", "remove it"),
    Row("a class of Java", {"kafka.key.deserializer": "a.B"}, INVALID, "is not supported", "keys arrive as bytes"),
]

SUBSCRIPTIONS = [
    Row("nothing to read", {}, MISSING, "none of the options subscribe", ".option(", {**BROKER}),
    Row("topics and a pattern", {"subscribePattern": "a"}, CONFLICT, "are both set", "exactly one of"),
    bad("commas only", "subscribe", ",, ,", "names no topic", "topic names separated by commas"),
    bad("a topic with a slash", "subscribe", "../../etc/passwd", "no topic can be called", "topic names"),
    bad("the folder itself", "subscribe", "a,..", "no topic can be called '..'", "topic names"),
    bad("an escape in a topic", "subscribe", f"a,{ESCAPE}", r"called '\x1b]0;owned\x07'", "topic names"),
    bad("a topic of two lines", "subscribe", "orders\nKAFKA_ERROR: all is lost", r"orders\nKAFKA", "topic names"),
    bad("a topic written from right to left", "subscribe", "a\u202eb", r"a\u202eb", "topic names"),
    bad("a letter that looks like another", "subscribe", "оrders", "no topic can be called", "topic names"),
    bad("a topic of 250 characters", "subscribe", "t" * 250, "(250 characters)", "topic names"),
    bad("a redis url as topic", "subscribe", f"redis://:{SECRET}@h", "may hold a password", "topic names"),
    bad("a topic of a megabyte", "subscribe", "t" * 10**6, "(1000000 characters)", "topic names"),
    bad(
        "five megabytes of topics",
        "subscribe",
        "t," * 2_500_000,
        "has 5000000 characters; the limit is 1000000",
        "topic names",
    ),
]

PATTERNS = [
    Row(case, {"subscribePattern": regex}, INVALID, words, "a regular expression", BROKER, None)
    for case, regex, words in (
        ("nine thousand groups that are not closed", "(" * 9_000, "not a regular expression"),
        ("a reference to no group", r"a\1", "invalid group reference"),
        ("a name of two groups", "(?P<a>x)(?P<a>y)", "redefinition of group name"),
        ("a repetition of nothing", "*", "nothing to repeat"),
        ("a repetition without bounds", "a{99999999999}", "too large"),
        ("a pattern of 10,001 characters", "a" * 10_001, "has 10001 characters"),
        ("a pattern with an escape", f"orders{ESCAPE}", "control character"),
        ("a pattern of megabytes", "a|" * 2_500_000, "has 5000000 characters"),
    )
]

ASSIGNMENTS = [
    assigned("text behind the JSON", '{"a":[0]} x', "not JSON (Extra data"),
    assigned("a list", "[0]", "not a JSON object"),
    assigned("a hundred thousand brackets", "[" * 100_000, "nested too deeply"),
    assigned("a topic twice", '{"a":[0],"a":[1]}', '"a" occurs twice'),
    assigned("a topic with an escape", json.dumps({ESCAPE: [0]}), r"\x1b]0;owned\x07"),
    assigned("a fraction of a partition", '{"a":[0.5]}', "0.5 is not a whole number"),
    assigned("true as a partition", '{"a":[true]}', "true is not a whole number"),
    assigned("a number of no end", '{"a":[%s]}' % ("9" * 5_000), "(5000 characters)"),
    assigned("no number", '{"a":[NaN]}', "NaN is not a whole number"),
    assigned("a partition beyond 31 bits", '{"a":[2147483648]}', "2147483648 is not within"),
    assigned("a partition with a leading zero", '{"a":{"00":[]}}', '"00" is not the number of a partition'),
    assigned("ranges that overlap", '{"a":{"0":[[0,9],[9,12]]}}', "[0,9] and [9,12] of a-0 overlap"),
    assigned("an inverted range", '{"a":{"0":[[9,0]]}}', "[9,0] is inverted"),
    assigned("a range beyond the hash space", '{"a":{"0":[[0,9223372036854775808]]}}', "is not within"),
    assigned("a range of three", '{"a":{"0":[[0,1,2]]}}', "not a key range"),
    assigned("no partition", '{"a":{}}', "names no partition"),
    assigned("megabytes of partitions", '{"a":[' + "1," * 10**6 + "1]}", "has 2000009 characters"),
    Row(
        "key ranges of a query that does not share",
        {"subscribe": None, "assign": '{"a":{"0":[[0,9]]}}', "sharing": "partitions"},
        CONFLICT,
        "assign names parts of partitions",
        "assign whole partitions",
    ),
]

KEYS = "JSON with 1 to 10,000 keys"
FILTERS = [
    bad("keys that are no JSON", "filterKeysAllow", "plane-1", "not JSON", KEYS),
    bad("an object of keys", "filterKeysDeny", '{"plane-1":1}', "not a JSON list of keys", KEYS),
    bad("no key to allow", "filterKeysAllow", "[]", "it has 0 keys", KEYS),
    bad("a million keys", "filterKeysDeny", json.dumps([0] * 300_000), "it has 300000 keys", KEYS),
    bad("megabytes of keys", "filterKeysDeny", json.dumps(["a" * 99] * 20_000), "the limit is 1000000", KEYS),
    bad("a key that is a number", "filterKeysAllow", "[NaN]", "NaN is not a string", KEYS),
    bad("a key with an escape", "filterKeysAllow", json.dumps([[ESCAPE]]), "is not a string", KEYS),
    bad("hex of half a byte", "filterKeysAllow", '[{"hex":"a"}]', "not an even number of hex digits", KEYS),
    bad("keys nested too deeply", "filterKeysAllow", "[" * 100_000, "nested too deeply", KEYS),
    bad("a password among keys", "filterKeysAllow", f'["redis://u:{SECRET}@h",1]', "may hold a password", KEYS),
    bad("a file of keys that is not there", "filterKeysAllow", "file:/no/such", "No such file", "file:/path"),
    bad("a file of keys that is a folder", "filterKeysDeny", "file:/", "not a regular file", "file:/path"),
    bad("a file of keys without end", "filterKeysDeny", "file:/dev/zero", "not a regular file", "file:/path"),
    bad("a file of keys beside the driver", "filterKeysAllow", "file:keys", "path is not absolute", "file:/path"),
    bad("a file of keys on another host", "filterKeysAllow", "file://host/keys", "No such file", "file:/path"),
    bad("a file with an escape", "filterKeysAllow", f"file:/{ESCAPE}", r"\x1b]0;owned\x07", "file:/path"),
    bad("key ranges by name", "filterKeyRanges", '["a","b"]', '"a" is not a key range', "ranges of the key hash"),
    bad("key ranges that overlap", "filterKeyRanges", "[[0,5],[5,9]]", "overlap", "ranges of the key hash"),
    bad("no key range", "filterKeyRanges", "[]", "not a list of 1 to 4096", "ranges of the key hash"),
    bad(
        "a key range beyond the hashes",
        "filterKeyRanges",
        "[[0,9223372036854775808]]",
        "is not within",
        "ranges of the",
    ),
    bad("records of less than nothing", "filterRecordBytesMin", "-1", "not a size", "a plain number is bytes"),
    bad("records of a gigabyte each", "filterRecordBytesMax", "2g", "too large", "less than 2GiB"),
    Row(
        "sizes upside down",
        {"filterRecordBytesMin": "10", "filterRecordBytesMax": "9"},
        CONFLICT,
        "filterRecordBytesMin (10) is higher than filterRecordBytesMax (9)",
        "lower filterRecordBytesMin",
    ),
    Row(
        "every allowed key denied",
        {"filterKeysAllow": '["a"]', "filterKeysDeny": '["b",{"hex":"61"}]'},
        CONFLICT,
        "no record passes",
        "remove keys from filterKeysDeny",
    ),
    Row("a filter of values", {"filter.values.deny": "[]"}, UNKNOWN, "filter.values.deny", "filterKeysDeny"),
]

STARTS = [
    bad("an offset below -2", "startingOffsets", '{"a":{"0":-3}}', "-3 is not within -2", "earliest, latest or JSON"),
    bad("an offset beyond 64 bits", "startingOffsets", '{"a":{"0":9223372036854775808}}', "is not within", "earliest"),
    bad("an offset as text", "startingOffsets", '{"a":{"0":"5"}}', '"5" is not a whole number', "earliest"),
    bad("a zero behind the word", "startingOffsets", "earliest\0", r"earliest\x00", "earliest, latest or JSON"),
    bad("a partition that is none", "startingOffsets", '{"a":{"x":5}}', '"x" is not the number', "earliest"),
    bad("a date as time", "startingTimestamp", "2026-01-01", "not a whole number", "one time in milliseconds"),
    bad("a time before 1970", "startingTimestamp", "-1", "too small", "one time in milliseconds"),
    bad("a time as fraction", "startingOffsetsByTimestamp", '{"a":{"0":1.7e12}}', "is not a whole number", "to JSON"),
    Row("a stream that ends", {"endingOffsets": "latest"}, INVALID, "for batch queries only", "spark.read"),
    Row(
        "a batch from latest",
        {"startingOffsets": "latest"},
        INVALID,
        "cannot start at latest",
        "earlier start",
        BATCH,
        False,
    ),
    Row(
        "a batch to earliest",
        {"endingOffsets": "earliest"},
        INVALID,
        "cannot end at earliest",
        "later end",
        BATCH,
        False,
    ),
    Row(
        "a batch that ends before it starts",
        {"startingOffsets": '{"orders":{"0":9}}', "endingOffsets": '{"orders":{"0":8}}'},
        *(CONFLICT, "is 9, after its endingOffsets, 8", "later end", BATCH, False),
    ),
    Row(
        "an end of other partitions",
        {"startingOffsets": '{"orders":{"0":9}}', "endingOffsets": '{"orders":{"1":8}}'},
        *(CONFLICT, "must name the same partitions", "add it to the other", BATCH, False),
    ),
]

NUMBERS = [
    bad("a batch of nothing", "maxOffsetsPerTrigger", "0", "too small", "a whole number from 1"),
    bad("a number as Python writes it", "maxOffsetsPerTrigger", "1_000", "not a whole number", "a whole number"),
    bad("a number of another script", "slots", "٣", "not a whole number", "from 1 to 1024"),
    bad("a number in base sixteen", "lanes", "0x10", "not a whole number", "from 1 to 4096"),
    bad("a number with an exponent", "minPartitions", "1e3", "not a whole number", "a whole number"),
    bad("a number of a line more", "capacity", "5\n", r"'5\n'", "from 1 to 1000000"),
    bad("more lanes than a partition may have", "lanes", "4097", "too large", "from 1 to 4096"),
    bad("a session below a second", "sessionTimeout", "999", "too short", "at least 1s, at most 30m"),
    bad("a word that is nearly true", "failOnDataLoss", "yes", "neither true nor false", "true or false"),
    bad("a word with an escape", "onStateLoss", f"fail{ESCAPE}", r"\x1b]0;owned\x07", "fail or earliest"),
    Row("the least above the most", {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, CONFLICT, "9", "lower"),
    Row("a heartbeat as long as the session", {"heartbeatInterval": "45000"}, INVALID, "45s", "at most a third"),
]

DURATIONS = [
    bad("a budget below a millisecond", "batchTimeBudget", "999us", "not a whole number of milli", "a duration like"),
    bad("a grace below a millisecond", "partitionGrowthGrace", "500us", "not a whole number of milli", "a duration"),
    bad("a lead with a rest", "maxLaneLead", "1001us", "not a whole number of milliseconds", "a duration like"),
    bad("a fraction of a second", "redisMaxOutage", "1.5s", "not a duration", "500ms, 60s, 15m or 2h"),
    bad("a unit nobody knows", "maxTriggerDelay", "1 fortnight", "not a duration", "a duration like"),
    bad("a time that runs backwards", "batchTimeBudget", "-1s", "not a duration", "a duration like"),
    bad("longer than a day", "batchTimeBudget", "25h", "too long", "at most 1d"),
    bad("days beyond 64 bits", "maxTriggerDelay", "9223372036854775807d", "too long", "a duration like"),
]

GROUPS = [
    bad("a group with an escape", "group", f"g{ESCAPE}", r"g\x1b]0;owned\x07", "without line breaks or control"),
    bad("a group with a bell of eight bits", "group", "g\x9b31m", r"g\x9b31m", "without line breaks"),
    bad("a group written from right to left", "group", "g\u202egpj.exe", r"\u202e", "without line breaks or control"),
    bad("a group of spaces", "group", "   ", "the name is empty", "1 to 255 characters"),
    bad("a group of a megabyte", "group", "g" * 10**6, "the name has 1000000 characters", "1 to 255 characters"),
    Row("two names of the group", {"kafka.group.id": "h"}, CONFLICT, "('g') and kafka.group.id ('h')", "remove one"),
    Row("a group without a Redis", {"redisUrl": None}, MISSING, "needs a Redis", 'option("redisUrl"'),
    Row(
        "a Redis without a group",
        {"redisUrl": "redis://h"},
        CONFLICT,
        "without the option group",
        'option("group"',
        STANDALONE,
    ),
    Row("a stream without a group", {}, MISSING, "needs a group", 'option("group"', BATCH),
    bad(
        "one label more than may be",
        "memberLabels",
        labels(65),
        "has 65 labels",
        "at most 64",
    ),
    bad("four thousand labels", "memberLabels", labels(4_000), "4000 labels", "at most 64"),
    bad("a label with an escape", "memberLabels", f"zone={ESCAPE}", r"'\x1b]0;owned\x07' of zone has", "name=value"),
    bad("a label with an escape for a name", "memberLabels", "\x1b=a", r"'\x1b=a' is not name=value", "name=value"),
    bad("a label of 257 bytes", "memberLabels", "zone=" + "ü" * 128 + "x", "zone has 257 bytes", "1 to 256 bytes"),
    bad("a label twice", "memberLabels", "zone=a,team=b,zone=c", "the name zone occurs twice", "each name once"),
    bad("a label that holds a login", "memberLabels", f"db=pg://u:{SECRET}@h,x", "may hold a password", "name=value"),
]

CLASSES = [
    bad("an assignor that is not there", "assignor", "fairest", "assignor 'fairest' does not exist", "grouped, range"),
    bad("an assignor twice", "assignor", "range,range", "range 1 is named twice", "by preference"),
    bad(
        "a hundred thousand assignors",
        "assignor",
        "range," * 99_999 + "range",
        "the list has 100000 assignors",
        "grouped",
    ),
    bad("an assignor with an escape", "assignor", f"{ESCAPE}:A", r"\x1b]0;owned\x07:A' is not module:Class", "grouped"),
    bad("a path as module", "assignor", "/tmp/evil.py:A", "'/tmp/evil.py:A' is not module:Class", "grouped"),
    bad("a module of a thousand parents", "assignor", "a." * 400 + "b:C", "is not module:Class", "module:Class"),
    bad("a module that ends the process", "assignor", "leaves_at_once:A", "SystemExit", "module:Class"),
    bad("a class that ends the process", "assignor", "exits:Made", "cannot be created: SystemExit", "module:Class"),
    bad("an assignor with an escape for a name", "assignor", "exits:Escape", "is not an assignor", "module:Class"),
    bad("a listener without a class", "ownershipListener", "json", "is not a class", "a class of your own"),
    bad("a port that does not exist", "reportPort", "65536", "neither a port nor", "from 1 to 65535"),
    bad("any port", "reportPort", "0", "neither a port nor", "from 1 to 65535"),
    bad("a range that ends before it begins", "reportPort", "41000-40000", "nor a range of ports", "40000-40010"),
    bad("a port in Arabic digits", "reportPort", "٤٠٠٠٠", "neither a port nor", "from 1 to 65535"),
    bad("a listener of a module that exits", "ownershipListener", "leaves_at_once:A", "SystemExit", "derived from"),
    bad("a listener without its methods", "ownershipListener", "json:JSONDecoder", "no method on_assigned", "derived"),
    bad(
        "a listener of megabytes",
        "ownershipListener",
        "a" * 3_000_000 + ":B",
        "has 3000002 characters",
        "module:Class",
    ),
]

REDIS = [
    Row(case, {"redisUrl": url}, INVALID, words, "redis://[user:password@]host")
    for case, url, words in (
        ("a Redis of another scheme", f"http://u:{SECRET}@h", "does not begin with redis://"),
        ("a password with a slash", f"redis://:{SECRET}/x@h", "cannot be separated"),
        ("a password with a hash sign", f"redis://:1#{SECRET}@h", "percent-encoded"),
        ("an escape in the password", f"redis://:{SECRET}\x1b@h", "control character"),
        ("no host behind the password", f"redis://:{SECRET}@", "names no host"),
        ("a time-out in the url", f"redis://:{SECRET}@h?socket_timeout=1", "behind ? is none of"),
        ("TLS that checks nothing there is", f"rediss://:{SECRET}@h?ssl_cert_reqs={SECRET}", "none of required"),
        ("a database that is a command", f"redis://:{SECRET}@h/0\r\nFLUSHALL", "control character"),
        ("a url of a megabyte", f"redis://:{SECRET}@" + "h" * 10**6, "characters; the limit is 10000"),
    )
]

BROKERS = [
    Row("no broker", {"kafka.bootstrap.servers": None}, MISSING, "is missing", "host:port"),
    *(
        bad(case, "kafka.bootstrap.servers", text, words, "to host:port, several separated by commas")
        for case, text, words in (
            (
                "user and password before the broker",
                f"u:{SECRET}@host:9092",
                "(not shown): it holds user:password@",
            ),
            ("a url of the broker with a password", f"a:1,SASL_SSL://u:{SECRET}@h:9093", "(not shown)"),
            ("a password with colons", f"u:{SECRET}:x@h:1", "(not shown)"),
            ("a password with a comma", f"u:{SECRET},{SECRET}@h:1", "(not shown)"),
            ("a password and no at sign", f"u:{SECRET}:9092", "(not shown): an address with several colons"),
            ("a broker without a port", "broker", "'broker' is not host:port"),
            ("a port beyond 16 bits", "broker:65536", "'broker:65536' is not host:port"),
            ("a path behind the port", "broker:9092/x", "is not host:port"),
            ("an escape in a broker's name", f"b{ESCAPE}:1", r"\x1b]0;owned\x07:1' is not host:port"),
            ("colons only", ":" * 100_000, "(100000 characters)"),
        )
    ),
]

LOGINS = [
    login("no login module", f'username="u" password="{SECRET}";', "not followed by one of required"),
    login("a quote that does not end", f'{JAAS} required password="{SECRET};', "a quote is missing"),
    login("no semicolon", f'{JAAS} required username="u" password="{SECRET}"', "does not end with a semicolon"),
    login("two modules", f'{JAAS} required password="{SECRET}"; {JAAS} required;', "something follows the semicolon"),
    login("no password", f'{JAAS} required username="{SECRET}";', "username or password is missing"),
    login("another flag", f'{JAAS} perhaps password="{SECRET}";', "not followed by one of"),
    login("an option without a value", f'{JAAS} required "{SECRET}";', "not of the form name"),
    login("comments that do not end", f"{JAAS} /* " * 16_000 + SECRET, "a value must be put in quotes"),
    Row(
        "a login config of megabytes",
        {**LOGIN, "kafka.sasl.jaas.config": SECRET * 300_000},
        *(INVALID, "kafka.sasl.jaas.config has 2100000 characters", "shorter"),
    ),
    Row(
        "tokens of nowhere",
        {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "OAUTHBEARER"},
        *(MISSING, "OAUTHBEARER needs kafka.sasl.oauthbearer.token.endpoint.url", "https://host/path"),
    ),
    Row(
        "tokens of a url with a password",
        {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.oauthbearer.token.endpoint.url": f"https://u:{SECRET}@host/token",
        },
        *(INVALID, "kafka.sasl.oauthbearer.token.endpoint.url = (not shown)", "https://host/path"),
    ),
    Row(
        "tokens without a client",
        {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "OAUTHBEARER",
            "kafka.sasl.oauthbearer.token.endpoint.url": "https://host/token",
            "kafka.sasl.jaas.config": f'x.OAuthBearerLoginModule required clientSecret="{SECRET}";',
        },
        *(INVALID, "clientId or clientSecret is missing", "clientId="),
    ),
    Row("a login without a config", LOGIN, MISSING, "PLAIN needs kafka.sasl.jaas.config", "username="),
    Row(
        "a login config as mechanism",
        {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": f'{JAAS} required password="{SECRET}";'},
        *(INVALID, "kafka.sasl.mechanism = (not shown)", "use PLAIN"),
    ),
    Row(
        "a keytab",
        {**LOGIN, "kafka.sasl.mechanism": "GSSAPI", "kafka.sasl.jaas.config": f'a.K required keyTab="{SECRET}";'},
        *(INVALID, "a keytab cannot be used", "kinit"),
    ),
]

BEGIN = "-----BEGIN CERTIFICATE-----"
TLS = [
    tls("a certificate that does not end", "it holds no CERTIFICATE", "PEM text", truststore_certificates=BEGIN),
    tls("twenty thousand of them", "it holds no CERTIFICATE", "PEM text", truststore_certificates=BEGIN * 20_000),
    tls(
        "ends of other names",
        *("it holds no CERTIFICATE", "PEM text"),
        truststore_certificates=f"{BEGIN}{SECRET}-----END X-----" * 20_000,
    ),
    tls("certificates of megabytes", "has 2700000 characters", "shorter", truststore_certificates=BEGIN * 100_000),
    tls(
        "a key that is a certificate",
        *("kafka.ssl.keystore.key = (not shown): it holds no PRIVATE KEY", "BEGIN PRIVATE KEY"),
        keystore_key=f"{BEGIN}{SECRET}-----END CERTIFICATE-----",
        keystore_certificate_chain=BEGIN,
    ),
    tls("a store of Java", "type = 'JKS': only PEM", "keytool", truststore_type="JKS", truststore_location="t.jks"),
    tls("a store with an escape", r"\x1b]0;owned\x07", "no control", truststore_location=ESCAPE, truststore_type="PEM"),
    tls("a password of a PEM store", "has no password", "kafka.ssl.key.password", truststore_password=SECRET),
    tls("a version that is broken", "unknown version", "TLSv1.2", enabled_protocols="TLSv1.0,TLSv1.2"),
    tls("a check nobody knows", "unknown algorithm", "https, or", endpoint_identification_algorithm="none"),
    bad("a protocol nobody knows", "kafka.security.protocol", "TLS", "unknown word", "PLAINTEXT, SSL"),
]

CLIENTS = [
    bad("a client with an escape", "kafka.client.id", f"c{ESCAPE}", r"c\x1b]0;owned\x07", "no control characters"),
    bad("a rack of two lines", "kafka.client.rack", "a\nb", r"'a\nb': it has a line break", "no control characters"),
    bad("a client of a megabyte", "kafka.client.id", "c" * 10**6, "it has 1000000 characters", "at most 1000"),
    bad("a prefix with an escape", "groupIdPrefix", ESCAPE, r"\x1b]0;owned\x07", "no control characters"),
    bad("a service with a zero", "kafka.sasl.kerberos.service.name", "k\0k", r"'k\x00k'", "no control"),
    bad("isolation in capitals", "kafka.isolation.level", "READ_COMMITTED", "unknown word", "read_uncommitted or"),
    bad("a buffer below -1", "kafka.receive.buffer.bytes", "-2", "too small", "from -1"),
    bad("a fetch beyond 31 bits", "kafka.fetch.max.bytes", "2147483648", "too large", "from 0 to 2147483647"),
    Row(
        "waits longer than the request",
        {"kafka.fetch.max.wait.ms": "30000"},
        CONFLICT,
        "not in ascending order",
        "less than",
    ),
]

FUNCTIONS = [
    Row("a function without a schema", {"function": "json:loads"}, MISSING, "not functionSchema", "set both"),
    Row("a schema without a function", {"functionSchema": "a long"}, MISSING, "but not function", "set both"),
    bad("a schema of brackets", "functionSchema", "{" * 100_000, "is not the json()", "columns like"),
    bad("a schema of nothing", "functionSchema", '{"type":"struct","fields":[]}', "has no field", "columns like"),
    Row(
        "keys at once without keys",
        {"function": "json:loads", "functionSchema": "a long", "functionConcurrency": "2"},
        *(CONFLICT, "functionConcurrency is set, but the function takes batches", "map_records or map_keys"),
    ),
    Row(
        "failures of batches",
        {"function": "builtins:len", "functionSchema": "a long", "functionOnError": "{}"},
        *(CONFLICT, "functionOnError is set, but the function takes batches", "map_records or map_keys"),
    ),
    bad("a policy of brackets", "functionOnError", "[" * 100_000, "not JSON", "map_records"),
    bad("a policy of lines", "functionOnError", '{"a\\nb":1}', r"unknown parameter 'a\nb'", "map_records"),
    bad("ages of attempts", "functionOnError", '{"attempts":' + "9" * 10_000 + "}", "64 bits", "map_records"),
    bad("a class named", "functionOnError", '{"retry_on":["os:system(1)"]}', "cannot be imported", "exception"),
    bad("a column that is not there", "columns", f"key,{ESCAPE}", r"called '\x1b]0;owned\x07'", "some of key"),
    bad("a hundred thousand columns", "columns", ",".join(f"c{i}" for i in range(10**5)), "characters)", "some of key"),
    bad("a replay of some", "replayAcknowledged", "some", "'some'", "true or false"),
    bad("a column of another case", "columns", "Acknowledgement", "'Acknowledgement'", "headers, acknowledgement"),
    Row("columns and headers", {"columns": "key", "includeHeaders": "true"}, CONFLICT, "includeHeaders", "remove one"),
]

REDUNDANT = {"redundancy": "2"}

REDUNDANCY = [
    bad("no replica set", "redundancy", "0", "0", "from 1 to 16"),
    bad("a million replica sets", "redundancy", "1000000", "1000000", "from 1 to 16"),
    bad("replica sets in words", "redundancy", "two", "two", "from 1 to 16"),
    bad(
        "a group whose sets have too long names",
        "group",
        "g" * 254,
        "256 characters, more than 255",
        "shorter name",
        **REDUNDANT,
    ),
    Row("replica sets without a group", REDUNDANT, CONFLICT, "only a group has", "remove redundancy", STANDALONE),
    Row(
        "replica sets of joined topics",
        REDUNDANT | {"subscribe": "a,b", "copartition": "a,b"},
        CONFLICT,
        "redundancy=2 and copartition are",
        "remove redundancy",
    ),
    Row(
        "replica sets of pinned ranges",
        REDUNDANT | {"subscribe": None, "assign": json.dumps({"orders": {"0": [[0, 2**62 - 1]]}})},
        CONFLICT,
        "names key ranges",
        "a group of its own",
    ),
]

STANDBY = {"standby": "true"}

STANDBYS = [
    bad("a standby in words", "standby", "hot", "'hot'", "true or false"),
    Row("a standby of a batch", STANDBY, CONFLICT, "a batch (spark.read)", "remove standby", BATCH, streaming=False),
    Row("a standby without a group", STANDBY, CONFLICT, "no other member to", "options group", STANDALONE),
    Row("a standby without order", STANDBY | {"ordering": "none"}, CONFLICT, "ordering=none", "after the lease"),
    Row("a standby of two sets", STANDBY | REDUNDANT, CONFLICT, "redundancy is above 1", "a group of its own"),
    Row(
        "a standby of joined topics",
        STANDBY | {"subscribe": "a,b", "copartition": "a,b"},
        CONFLICT,
        "copartition is set",
        "remove standby",
    ),
    Row(
        "a pinned standby",
        STANDBY | {"subscribe": None, "assign": json.dumps({"orders": {"0": [[0, 2**62 - 1]]}})},
        CONFLICT,
        "names key ranges",
        "is a spare already",
    ),
]

COPARTITION = {"subscribe": "a,b,c", "copartition": "a,b"}

JOINS = [
    bad("one joined topic", "copartition", "a", "names one topic, a", "2 to 16 topic names"),
    bad("no joined topic", "copartition", "", "no topic can be called ''", "2 to 16 topic names"),
    bad("a joined topic twice", "copartition", "a,b,a", "the topic a occurs twice", "each once"),
    bad("a joined topic with an escape", "copartition", f"a,{ESCAPE}", r"called '\x1b]0;owned\x07'", "each once"),
    bad("a hundred thousand joined topics", "copartition", "a," * 10**5 + "b", "names 100001 topics", "2 to 16"),
    bad("a joined topic of a megabyte", "copartition", "a," + "b" * 9 * 10**5, "characters)", "each once"),
    *(
        Row(
            f"joined topics, and {name}",
            COPARTITION | {name: value},
            CONFLICT,
            f"copartition and {name}",
            f"remove {name}",
        )
        for name, value in {"assignor": "grouped", "maxRecordsPerPartition": "5"}.items()
    ),
    Row(
        "joined topics of assigned partitions",
        {"assign": '{"a":[0],"b":[0]}', "copartition": "a,b"},
        *(CONFLICT, "copartition and assign", "use subscribe"),
        STANDALONE,
    ),
    Row(
        "a joined topic that is not read",
        {"subscribe": "a", "copartition": "a,b"},
        *(INVALID, "names topic b, which the option subscribe", "name the same topics"),
        BATCH,
        streaming=False,
    ),
    Row(
        "joined topics of which none is read",
        {"copartition": "a,b"},
        *(INVALID, "names topic a, which the option subscribe", "name the same topics"),
    ),
]

NONE, WHOLE = {"ordering": "none"}, {"ordering": "partition"}

ORDERINGS = [
    bad("an ordering that nobody knows", "ordering", "random", "random", "key, partition or none"),
    bad("no ordering", "ordering", "", "ordering", "key, partition or none"),
    bad("an ordering of a megabyte", "ordering", "k" * 10**6, "(1000000 characters)", "key, partition or none"),
    *(
        Row(
            f"no order, and {name}",
            NONE | {"subscribe": "a,b", name: value},
            CONFLICT,
            f"ordering=none and {name} are",
            f"remove {name}",
        )
        for name, value in {
            "assignor": "range",
            "capacity": "2",
            "ownershipListener": "coordinator.assignment.ownership_listener:OwnershipListener",
            "sharing": "required",
            "lanes": "8",
            "maxLaneLead": "1m",
            "partitionGrowthGrace": "1m",
            "maxIndividualCommits": "5",
            "copartition": "a,b",
        }.items()
    ),
    Row(
        "no order, and no replays of acknowledged records",
        NONE | {"replayAcknowledged": "false"},
        CONFLICT,
        "ordering=none and replayAcknowledged are",
        "remove replayAcknowledged",
    ),
    Row(
        "no order, and acknowledgements",
        NONE | {"columns": "value,acknowledgement"},
        CONFLICT,
        "columns names acknowledgement",
        "remove acknowledgement",
    ),
    *(
        Row(
            f"partition order, and {name}",
            WHOLE | {name: value},
            CONFLICT,
            f"ordering=partition and {name} are",
            f"remove {name}",
        )
        for name, value in {
            "sharing": "required",
            "lanes": "8",
            "minPartitions": "8",
            "maxRecordsPerPartition": "8",
        }.items()
    ),
    Row(
        "partition order, and a function of keys",
        WHOLE | {"function": "operator:eq", "functionSchema": "key binary", "functionTakes": "keys"},
        CONFLICT,
        "called key by key",
        "map_batches",
    ),
    Row(
        "partition order, and acknowledgements",
        WHOLE | {"columns": "value,acknowledgement"},
        CONFLICT,
        "columns names acknowledgement",
        "remove acknowledgement",
    ),
    Row("partition order, and no group", WHOLE, CONFLICT, "without a group shares", "remove ordering", STANDALONE),
    Row("no order, and no group", NONE, CONFLICT, "without a group shares", "remove ordering", STANDALONE),
]

ROWS = [
    *(
        *NAMES,
        *SUBSCRIPTIONS,
        *PATTERNS,
        *ASSIGNMENTS,
        *FILTERS,
        *STARTS,
        *NUMBERS,
        *DURATIONS,
        *GROUPS,
        *CLASSES,
        *JOINS,
        *REDIS,
    ),
    *(*BROKERS, *LOGINS, *TLS, *CLIENTS, *FUNCTIONS, *ORDERINGS, *REDUNDANCY, *STANDBYS),
]

EXITS = f"""
import sys

class Made:
    def __init__(self): sys.exit(3)

class Escape:
    name, version = {ESCAPE!r}, 1
    def assign(self, *_): pass
"""


@pytest.fixture(scope="module", autouse=True)
def _modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The modules that rows name, where they can be imported."""
    folder: Path = tmp_path_factory.mktemp("modules")
    (folder / "leaves_at_once.py").write_text("raise SystemExit(3)\n")
    (folder / "exits.py").write_text(EXITS)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


def refusal(row: Row) -> ConfigurationError:
    """The error that refuses a row."""
    merged = {name: value for name, value in {**row.base, **row.given}.items() if value is not None}
    with pytest.raises(ConfigurationError) as refused:
        validate(merged, streaming=row.streaming)
    return refused.value


@pytest.mark.timeout(20)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.case) for row in ROWS])
def test_a_hostile_option_is_refused_by_name(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COOP_REDIS", raising=False)
    error = refusal(row)
    assert error.name == row.name
    assert row.words in error.what
    assert row.remedy in error.remedy
    shown = str(error) + repr(error)
    assert len(str(error)) <= MOST
    assert not has_control_character(str(error))
    assert SECRET not in shown
    assert "hunter" not in shown
    assert error.__suppress_context__ or error.__context__ is None


def test_no_two_rows_are_the_same_case() -> None:
    assert len({row.case for row in ROWS}) == len(ROWS)
    assert len({json.dumps([dict(row.given), dict(row.base), row.streaming]) for row in ROWS}) == len(ROWS)
