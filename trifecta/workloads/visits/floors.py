"""What the machine drops of a video by itself: measured once a run, browser and video, before the first trial of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from msgspec import structs

from trifecta.contract.load import LoadSummary
from trifecta.design.errors import CannotError
from trifecta.design.model import PROTOCOL_FACTOR, BrowserWorkload, Cell, Trial
from trifecta.lab.engine import EngineError
from trifecta.store import parquet
from trifecta.video.archive import Video
from trifecta.video.floor import FrameCounts, LocalVideo, shares_of
from trifecta.workloads.visits.configs import START_NS, Drafts, browser_config, total_timeout_ns
from trifecta.workloads.visits.place import Place
from trifecta.workloads.visits.session import BrowserSession

_GRACE_S = 15.0


class Floors:
    """The answers so far."""

    def __init__(self, session: BrowserSession) -> None:
        """Nothing is played before it is asked for."""
        self._session = session
        self._known: dict[tuple[object, ...], tuple[list[float] | None, str | None]] = {}

    def shares(self, trial: Trial, place: Place) -> tuple[Sequence[float] | None, str | None]:
        """The share of frames that is dropped at each rung without a network, or why it is not known.

        Of a page neither. Stopped when the user asks for it.
        """
        workload, material = self._session.workload(trial), self._session.material(trial)
        if material.video is None:
            return None, None
        browser = trial.client
        key = (browser, material.video.local)
        if key not in self._known:
            # Without a floor the trials go on: the check of the playback says that it is not known, and why.
            try:
                self._known[key] = self._measure(trial, workload, material.video, browser, place), None
            except (EngineError, CannotError) as error:
                self._known[key] = None, " ".join(str(error).split())
        return self._known[key]

    def _measure(
        self, trial: Trial, workload: BrowserWorkload, video: Video, browser: str, place: Place
    ) -> list[float]:
        session = self._session
        drafts = _drafts(session.state)
        with LocalVideo(video, session.at(place, "client"), session.log("floor")) as local:
            alone = workload.unhindered(local.watch_ns)
            config = browser_config(
                _over_h1(trial),
                alone,
                (local.host,),
                video.player_url,
                drafts,
                certificates=session.certificates,
                work_dir=session.state,
            )
            assert config.video is not None
            config = structs.replace(config, video=structs.replace(config.video, player_url=local.player_url()))
            try:
                with session.spawn_browser(place, browser, session.faults.browser_driver) as driver:
                    driver.configure(config)
                    driver.wait_summary(
                        LoadSummary, (START_NS + total_timeout_ns(alone)) / 1e9 + _GRACE_S, session.stop
                    )
                assert drafts.playback is not None
                rows = cast(list[FrameCounts], parquet.read(drafts.playback))
            except FileNotFoundError as error:
                raise CannotError("the browser's driver wrote no playback of the video without a network") from error
            finally:
                for path in drafts.files:
                    path.unlink(missing_ok=True)
        shares = shares_of(rows, len(video.ladder.renditions))
        if shares is None:
            raise CannotError("without a network the browser did not show every rung of the video")
        return shares


def _over_h1(trial: Trial) -> Trial:
    """The trial as one over HTTP/1.1, whatever is compared."""
    others = {name: level for name, level in trial.levels.items() if name != PROTOCOL_FACTOR}
    return replace(trial, compare=PROTOCOL_FACTOR, arm="h1", level="h1", cell=Cell(trial.cell.key, others))


def _drafts(folder: Path) -> Drafts:
    """Files of this measurement, which go with it; only the playback is read."""
    folder.mkdir(exist_ok=True)
    har = folder / "floor-har"
    har.mkdir(exist_ok=True)
    samples, visits, fetches, playback = (
        folder / f"floor-{name}.parquet" for name in ("samples", "visits", "fetches", "playback")
    )
    return Drafts(samples, visits, fetches, playback, har, None)
