"""What the documentation says of the checks is so."""

import re
from pathlib import Path

from tests.analysis.checks import sound
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS, TrialCheck

DOCS = Path(__file__).parents[3] / "docs"


def test_the_example_of_a_new_check_works(monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "add-a-check.md").read_text(encoding="utf-8"), re.DOTALL)
    check, _table, test = blocks
    names = {"judge": sound.judge, "PLAIN": sound.PLAIN, "TRANSPORT": sound.TRANSPORT}
    exec(compile(check, "add-a-check.md", "exec"), names)
    monkeypatch.setitem(TRIAL_CHECKS, "retransmits", TrialCheck("example", names["check"]))
    exec(compile(test, "add-a-check.md", "exec"), names)
    names["test_repeated_segments_on_a_clean_path_warn"]()
    quiet = {"counters": {"TcpOutSegs": 1000, "TcpRetransSegs": 3}}
    assert sound.judge("retransmits", path=sound.PLAIN, transport={"client": quiet}).status == "pass"
    assert sound.judge("retransmits").status == "unknown"


def test_every_check_stands_in_the_methodology():
    text = (DOCS / "methodology.md").read_text(encoding="utf-8")
    assert [name for name in (*TRIAL_CHECKS, *RUN_CHECKS) if f"`{name}`" not in text] == []
