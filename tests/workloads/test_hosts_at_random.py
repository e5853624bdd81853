"""Hosts that are hit at random: sshd, the engine or the connection, at a random moment of a race, twenty times."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.lab.inside import told_inside
from tests.workloads.test_failures import assert_whole
from tests.workloads.test_hosts import HELPERS, WHY, rows

pytestmark = [pytest.mark.long, pytest.mark.lab, pytest.mark.skipif(bool(WHY), reason=WHY or "there")]
HITS = int(os.environ.get("TRIFECTA_HOST_HITS", "20"))
EACH_S = 60 + 3 + 200 + 45
DONE, NONE_COUNTS, CANNOT = 0, 1, 3
inside = partial(told_inside, HELPERS)


@pytest.mark.timeout(EACH_S * HITS + 180)
def test_what_is_hit_at_random_leaves_trials_whole_or_marked_and_nothing_else(tmp_path: Path) -> None:
    told = inside(
        tmp_path,
        f"""
        KINDS = ("killed engine", "frozen engine", "killed sshd", "frozen sshd", "cut for 5 s", "cut for good")
        told, drawn = [], random.Random(11)
        lengths = ("duration=1 s", "requests=0", "warmup=100 ms", "server=origin", "protocol=h2,h3")
        with three_hosts(folder) as hosts:
            for number in range({HITS}):
                out, what, where = folder / f"run{{number}}", KINDS[number % len(KINDS)], drawn.choice(FAR)
                process = hosts.start(*race(hosts, out, lengths=lengths), stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE)
                hosts.at_work(out, CLIENT, "load")
                time.sleep(5 * drawn.random())
                sent = signal.SIGKILL if what.startswith("killed") else signal.SIGSTOP
                if what.startswith("cut"):
                    hosts.cut(HERE, where)
                    if what == "cut for 5 s":
                        time.sleep(5)
                        hosts.cut(HERE, where, mend=True)
                else:
                    among = hosts.engines if what.endswith("engine") else hosts.sessions
                    until = time.monotonic() + 10
                    while not (pids := among(where)) and process.poll() is None and time.monotonic() < until:
                        time.sleep(0.01)  # between two trials
                    hits = 0
                    for pid in [pids[-1]] if "engine" in what and pids else pids:
                        try:
                            os.kill(pid, sent)
                            hits += 1
                        except ProcessLookupError:
                            pass  # it ended by itself
                    assert hits, f"{{what}} of {{where}}: nothing was hit"
                _, errors = process.communicate(timeout=200)
                hosts.cut(HERE, where, mend=True)
                left = hosts.wait_clean(45)
                told.append([f"{{what}} of {{where}}", process.returncode, errors.decode(), left])
        print(json.dumps(told))
        """,
        timeout_s=EACH_S * HITS + 120,
    )
    assert len(told) == HITS
    ends: Counter[str] = Counter()
    for number, (what, code, errors, left) in enumerate(told):
        found = rows(tmp_path / f"run{number}")
        marked = [row for row in found if row["error"] is not None]
        ends[f"{what.partition(' of')[0]}: {len(marked)} of {len(found)} marked, exit code {code}"] += 1
        assert left == {"client": [], "server": []}, (what, left)
        assert code in (DONE, NONE_COUNTS, CANNOT), (what, errors)
        assert len(found) == 2 * 3 or code != DONE, what
        assert errors.strip() or code != CANNOT, what
        assert not any(row["valid"] for row in marked), what
        assert len(marked) <= 1 or "for good" in what, (what, [row["error"] for row in marked])
        assert_whole(tmp_path / f"run{number}")
    for end, count in sorted(ends.items()):
        print(f"{count} × {end}")
