"""sasl.jaas.config: each row was also put to Java's own parser (Kafka 4.2.0), which reads or refuses the same."""

import pytest

from spark_coop_source.options.jaas import LoginModule, parse

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param('{} required username="u" password="p";', {"username": "u", "password": "p"}, id="the usual form"),
        pytest.param("{} required username='u' password='p';", {"username": "u", "password": "p"}, id="single quotes"),
        pytest.param("{} required password=p-w_d$1;", {"password": "p-w_d$1"}, id="no quotes"),
        pytest.param("{} required password=a.b;", {"password": "a.b"}, id="a dot without quotes"),
        pytest.param(r'{} required password="a\"b\\c\n\t\101\q";', {"password": 'a"b\\c\n\tAq'}, id="escapes"),
        pytest.param(
            r'{} required password="\400\08";', {"password": " 0\x008"}, id="octal escapes end where Java's do"
        ),
        pytest.param('{} required username = "u"\n password = "p" ; ', {"username": "u", "password": "p"}, id="lines"),
        pytest.param('{} REQUIRED username="u";', {"username": "u"}, id="a flag in capitals"),
        pytest.param("{} required;", {}, id="no options"),
        pytest.param(
            '{} required username="u" // c;\n password="p";', {"username": "u", "password": "p"}, id="// comment"
        ),
        pytest.param('{} required /* ; */ password="p;=";', {"password": "p;="}, id="marks in quotes and comments"),
        pytest.param('{} required password="";', {"password": ""}, id="an empty value"),
        pytest.param('{} required username="u" username="v";', {"username": "v"}, id="the last of two counts"),
        pytest.param('{} required password="ü€";', {"password": "ü€"}, id="other scripts"),
        pytest.param('"{}" required username="u";', {"username": "u"}, id="the module in quotes"),
        pytest.param('{} required user.name="u";', {"user.name": "u"}, id="a dot in a name"),
        pytest.param(
            '{} required password="a"username="u";', {"password": "a", "username": "u"}, id="no space between"
        ),
        pytest.param('{} required password="it\'s";', {"password": "it's"}, id="the other quote inside"),
    ],
)
def test_a_login_module_is_read(text: str, options: dict[str, str]) -> None:
    assert parse(text.replace("{}", PLAIN)) == LoginModule("PlainLoginModule", options)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "no login module", id="nothing"),
        pytest.param('="secret";', "no login module", id="no module"),
        pytest.param("{}", "not followed by one of required", id="a module alone"),
        pytest.param('{} bogus password="secret";', "not followed by one of required", id="an unknown flag"),
        pytest.param('{} required password="secret"', "semicolon", id="no semicolon"),
        pytest.param('{} required password="secret"; {} required;', "one login module", id="two modules"),
        pytest.param("{} required password=12345;", "in quotes", id="a number without quotes"),
        pytest.param("{} required password=1secret;", "in quotes", id="a digit first without quotes"),
        pytest.param("{} required password=secret@x;", "in quotes", id="an at sign without quotes"),
        pytest.param("{} required password=secret/b;", "in quotes", id="a slash without quotes"),
        pytest.param('{} required password="secret;', "quote is missing", id="half a quote"),
        pytest.param('{} required password="secret\nline";', "quote is missing", id="a line break in quotes"),
        pytest.param('{} required username="u", password="secret";', "in quotes", id="a comma"),
        pytest.param('{} required password "secret";', "of the form", id="no equals sign"),
        pytest.param("{} required password=;", "of the form", id="no value"),
    ],
)
def test_a_login_module_is_refused_and_nothing_of_it_repeated(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse(text.replace("{}", PLAIN))
    assert "secret" not in str(refused.value)


def test_a_login_module_does_not_show_its_options() -> None:
    assert "secret" not in repr(parse(f'{PLAIN} required password="secret";'))
