"""``python -m trifecta.workloads.cluster.uploader URL``: puts what trials leave into an object store, for a node.

The node is in a private network and may have no threads before it is there; this is outside, and has some. It is told
in lines of JSON on standard input what to put, answers each with a line, and ends when standard input is closed. Files
are read where they are; between two blocks nothing is measured, and only then it is told.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trifecta.design.errors import CannotError, TrifectaError

_REMEDY = "check that this node reaches it, with credentials that may read and write there"


class Uploader:
    """The program, from the node's side."""

    def __init__(self, url: str) -> None:
        """Start it; before the node has threads, or a network of its own."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "trifecta.workloads.cluster.uploader", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def expect(self, study: str) -> None:
        """CannotError where this node does not find there what the head has put there: the text of the study."""
        self._ask({"study": study})

    def put(self, files: Mapping[str, Path]) -> None:
        """Have files there, by the names of their objects; CannotError where one cannot be put."""
        self._ask({"files": [[name, str(path)] for name, path in files.items()]})

    def _ask(self, what: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        answer = ""
        try:
            self._process.stdin.write(json.dumps(what) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            pass
        if not answer:
            raise CannotError("the program that puts files into the object store has ended")
        if (refusal := json.loads(answer)["cannot"]) is not None:
            raise CannotError(refusal)

    def close(self) -> None:
        """Have it end. In the sandbox it is nobody's child, and its number is another's: it ends as its input does."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # of a line that it did not live to read
            self._process.stdin.close()
        self._process.wait()


def _do(url: str, what: Mapping[str, object]) -> None:
    from trifecta.store import remote_files
    from trifecta.store.exports import object_store

    with object_store.clear(url, _REMEDY):
        place = object_store.opened(url, patient=True, make=False)
        if "study" in what:
            try:
                same = place.get("study.yaml").decode(errors="replace") == what["study"]
            except FileNotFoundError:
                same = False
            if not same:
                raise CannotError(
                    f"{place.url}: what the head has put there is not found from here; it is another store"
                )
        files = what.get("files", [])
        assert isinstance(files, list)
        remote_files.put_all(place, [(name, Path(path)) for name, path in files])


def main() -> int:
    """Put what is asked until nothing more will be."""
    url = sys.argv[1]
    for line in sys.stdin:
        sentence = None
        try:
            _do(url, json.loads(line))
        except TrifectaError as error:
            sentence = str(error)
        except OSError as error:
            sentence = f"a file cannot be read ({error.strerror})"
        print(json.dumps({"cannot": sentence}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
