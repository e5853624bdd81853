"""What the documentation says of the checks is so."""

import re
from pathlib import Path

from tests.analysis.checks import sound

DOCS = Path(__file__).parents[3] / "docs"


def test_the_example_of_a_new_check_works(monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "add-a-check.md").read_text(encoding="utf-8"), re.DOTALL)
    check, test = blocks
    names = {"judge": sound.judge, "PLAIN": sound.PLAIN, "TRANSPORT": sound.TRANSPORT}
    exec(compile(check, "add-a-check.md", "exec"), names)
    assert names["CHECK"].question == "Did TCP repeat itself where nothing was lost?"
    monkeypatch.setattr(sound, "TRIAL_CHECKS", {"retransmits": names["CHECK"]})
    exec(compile(test, "add-a-check.md", "exec"), names)
    names["test_repeated_segments_on_a_clean_path_warn"]()
    quiet = {"counters": {"TcpOutSegs": 1000, "TcpRetransSegs": 3}}
    assert sound.judge("retransmits", path=sound.PLAIN, transport={"client": quiet}).status == "pass"
    assert sound.judge("retransmits").status == "unknown"
