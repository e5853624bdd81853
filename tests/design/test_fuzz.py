"""Long fuzzing of study files and options: whatever the text, a study or one line. Run by ``make test-long``."""

import os
import random
import time

import pytest

from trifecta import studies
from trifecta.design.errors import UserError
from trifecta.design.study_file import parse_study

PIECES = ["{", "}", "[", "]", ":", ": ", "- ", "\n", "\n  ", "#", "&a ", "*a", "!!int ", "|", ">", "'", '"', "%", "\t"]
PIECES += ["0", "-1", "1e999", "1e-999", "999999999999999999999 s", "2 %", "200 %", "1 bdp", "0 packets", "h4", "new"]
PIECES += [
    "trial",
    "new:",
    "loss",
    "queue",
    "jitter",
    "trace",
    "factors",
    "\x00",
    "\ufeff",
    "\u2028",
    "é",
    "😀",
    "~",
    "<<",
]
FIRST_SEED = 1


def damaged(text: str, random_source: random.Random) -> str:
    for _ in range(random_source.randint(1, 6)):
        start = random_source.randint(0, len(text))
        end = min(len(text), start + random_source.choice((0, 0, 1, 3, 30)))
        text = text[:start] + random_source.choice(PIECES) + text[end:]
    return text


@pytest.mark.long
def test_damaged_studies_are_studies_or_one_line():
    base = studies.bundled()["race"].read_text()
    end = time.monotonic() + float(os.environ.get("TRIFECTA_FUZZ_SECONDS", "10"))
    seed = FIRST_SEED
    while time.monotonic() < end:
        text = damaged(base, random.Random(seed))
        try:
            study = parse_study(text, "fuzz.yaml")
        except UserError as error:
            assert "\n" not in str(error), (seed, str(error))
        except BaseException as error:
            raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
        else:
            assert parse_study(study.source, "again.yaml") == study, seed
        seed += 1
    assert seed > FIRST_SEED
