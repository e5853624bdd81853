"""One table of failures: every class that anybody gives has a sentence and a remedy there."""

import re
from pathlib import Path

import pytest

from trifecta.design.failures import FAILURES, failure, in_words, remedy

ROOT = Path(__file__).resolve().parents[2]
# Where classes come from: the engine's load and origin, and the adapters of other clients and browsers.
SOURCES = {
    "engine/crates/wire/src/error_class.rs": r'^        \w+ = "([a-z0-9_:]+)",$',
    "trifecta/implementations/programs/python-client": r'(?:fail|lose)\("([a-z0-9_:]+)"\)|"((?:tls|quic):\w+)"',
    "trifecta/implementations/clients": r'"((?:client|tls|quic):\w+)"',
    "trifecta/implementations/browsers": r'"((?:browser|tls|quic|malformed):\w+)"',
}


@pytest.mark.parametrize("source", list(SOURCES))
def test_every_class_has_a_sentence(source):
    path = ROOT / source
    files = [path] if path.is_file() else [one for one in path.rglob("*") if one.suffix in (".rs", ".py")]
    text = "\n".join(one.read_text() for one in files)
    found = {next(filter(None, match.groups())) for match in re.finditer(SOURCES[source], text, re.MULTILINE)}
    assert found, f"{source}: the pattern finds no class any more"
    assert found <= set(FAILURES), found - set(FAILURES)


def test_sentences_are_short_and_plain():
    for name, one in FAILURES.items():
        for text in (one.said, one.remedy, one.ask):
            assert "\n" not in text and not text.endswith("."), name
            assert set(re.findall(r"\{(\w*)\}", text)) <= {"protocol"}, name
        assert one.said and one.remedy, name


def test_classes_in_words():
    text = in_words({"timeout": 1, "tls:certificate": 7, "x": 1, "y": 1}, "HTTP/3")
    assert text.startswith("the server's certificate does not verify") and "(7 × tls:certificate); " in text
    assert text.endswith("others (1 × y)") and in_words({}) == "none"
    assert "site.certificates" in remedy({"tls:certificate": 7, "timeout": 1})
    assert failure("tls:new").said == failure("tls").said and "new" in failure("new").said
