"""A live video by RTMP, as the study made it: ffmpeg sends the renditions to nginx, which cuts them into HLS.

The module writes MPEG-2 TS and no dates into its playlists: the live latency is then what the player estimates by the
end of the playlist, and not comparable with that of the mode ``live``.
"""

from __future__ import annotations

import time
from pathlib import Path
from string import Template

from trifecta.design.errors import CannotError
from trifecta.design.model import VideoWorkload
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.debian import Program
from trifecta.implementations.server import Unsupported
from trifecta.video import ffmpeg
from trifecta.video.live import WINDOW_NS, LiveSource
from trifecta.video.playlists import folder_of
from trifecta.video.recipes import NGINX_RTMP

PORT = 1935  # IANA's for RTMP; every host of the lab has a loopback of its own
_MODULE = "usr/lib/nginx/modules/ngx_rtmp_module.so"
_LISTENS_S = 10.0
_PAUSE_S = 0.05


class RtmpSource(LiveSource):
    """A live video through nginx's RTMP module."""

    mode = "live-rtmp"
    dated = False

    @staticmethod
    def find() -> str:
        """Versions of nginx and ffmpeg; Unsupported when either or the module is missing."""
        program, _ = _find_programs()
        version = program.tells("-V", r"nginx version: nginx/(\S+)")
        return f"nginx {version} with its RTMP module, ffmpeg {ffmpeg.version()}"

    @staticmethod
    def check_workload(workload: VideoWorkload) -> None:
        """ffmpeg 5 sends H.264 by RTMP and not VP9."""
        if workload.codec != "h264":
            raise Unsupported(f"RTMP carries no {workload.codec} here; take 'codec: h264', or 'mode: live'")

    def _launch(self) -> None:
        program, module = _find_programs()
        state = self.folder.with_name(f"{self.folder.name}-nginx")
        state.mkdir(parents=True, exist_ok=True)
        values = {
            "MODULE": module,
            "PORT": PORT,
            "FOLDER": self.folder,
            "SEGMENT_MS": self.ladder.segment_ns // 1_000_000,
            "WINDOW_MS": WINDOW_NS // 1_000_000,
        }
        text = Template((PROGRAMS / "nginx-rtmp" / "nginx.conf").read_text(encoding="utf-8")).substitute(values)
        (state / "nginx.conf").write_text(text, encoding="utf-8")
        command = [*program.arguments, "-p", f"{state}/", "-c", str(state / "nginx.conf"), "-e", "stderr"]
        self._run(command, program.environment)
        self._wait_listening()
        self.started_wall_ns = time.time_ns()
        self._run(push_command(self))

    def _wait_listening(self) -> None:
        """Until nginx takes connections: ffmpeg does not ask twice."""
        wanted = f"0100007F:{PORT:04X} 00000000:0000 0A"  # proc_pid_net(5): address, peer, state LISTEN
        began = time.monotonic()
        while wanted not in self._host.read("/proc/thread-self/net/tcp"):
            if not self.running() or time.monotonic() - began > _LISTENS_S:
                raise CannotError(f"nginx does not take RTMP on port {PORT}: {self._last_words()}")
            time.sleep(_PAUSE_S)


def push_command(source: RtmpSource) -> list[str]:
    """ffmpeg that sends every rung to nginx at the pace of the clock, by its folder's name."""
    inputs: list[str | Path] = []
    outputs: list[str] = []
    for rung, (rendition, file) in enumerate(zip(source.ladder.renditions, source.ladder.files(), strict=True)):
        inputs += ["-re", "-stream_loop", "-1", *ffmpeg.LOCAL_ONLY, "-i", file]
        url = f"rtmp://127.0.0.1:{PORT}/live/{folder_of(rung, rendition)}"
        outputs += ["-map", str(rung), "-c", "copy", "-f", "flv", url]
    return ffmpeg.command(*inputs, *outputs)


def _find_programs() -> tuple[Program, Path]:
    """nginx and the module that was built for it: those of the private root, or the system's."""
    rooted = NGINX_RTMP.folder() / _MODULE
    program = NGINX_RTMP.locate("usr/sbin/nginx")
    module = rooted if program.origin != "on PATH" else Path("/") / _MODULE
    if not module.is_file():
        raise Unsupported("nginx has no RTMP module here; run: trifecta get nginx-rtmp")
    return program, module
