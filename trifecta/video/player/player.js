// The player: hls.js with its own settings but one, and what it did. playback.py calls the functions of `player`.
// Times are milliseconds of performance.now(), media times milliseconds of the video's own time line.
"use strict";

const player = (() => {
  const SAMPLE_MS = 250; // four a second
  const STUCK_MS = 500; // without an event of the browser, this long without progress is a stall
  const PROGRESS_S = 0.01;

  const video = document.querySelector("video");
  const events = [];
  const segments = [];
  let hls = null;
  let options = {};
  let began = null; // play was pressed
  let firstFrame = null;
  let ended = null;
  let failure = null; // the first error that ends the watch
  let rung = null; // of the segment that is shown
  let stalled = false;
  let last = { time: 0, position: 0 }; // when the position last moved
  let sampler = null;

  function bufferAhead() {
    const ranges = video.buffered;
    for (let index = 0; index < ranges.length; index++) {
      // A tenth of a second: positions and ranges are rounded, and browsers play over small gaps.
      if (ranges.start(index) <= video.currentTime + 0.1 && video.currentTime <= ranges.end(index)) {
        return ranges.end(index) - video.currentTime;
      }
    }
    return 0;
  }

  function played() {
    let sum = 0;
    for (let index = 0; index < video.played.length; index++) {
      sum += video.played.end(index) - video.played.start(index);
    }
    return sum;
  }

  // How far behind the encoder the picture is: by EXT-X-PROGRAM-DATE-TIME, else as hls.js estimates it by the playlist.
  function latency() {
    if (!options.live || !hls || firstFrame === null) return null;
    const shown = hls.playingDate;
    if (shown) return Date.now() - shown.getTime();
    return hls.latency > 0 ? hls.latency * 1000 : null;
  }

  function bitrate() {
    const level = hls && rung !== null ? hls.levels[rung] : null;
    return level ? level.averageBitrate || level.bitrate : null;
  }

  function note(event, time = performance.now()) {
    const quality = video.getVideoPlaybackQuality();
    events.push({
      time,
      event,
      position: video.currentTime * 1000,
      buffer: bufferAhead() * 1000,
      rung,
      bitrate: bitrate(),
      shown: quality.totalVideoFrames - quality.droppedVideoFrames,
      dropped: quality.droppedVideoFrames,
      latency: latency(),
    });
  }

  function fail(kind, details, url = null, status = null) {
    if (failure || ended !== null) return;
    failure = { kind, details: String(details), url, status };
    note("error");
  }

  function stall(time) {
    if (stalled || firstFrame === null || video.seeking || video.ended || ended !== null) return;
    stalled = true;
    note("stall", time);
  }

  function moved() {
    if (Math.abs(video.currentTime - last.position) < PROGRESS_S) return;
    last = { time: performance.now(), position: video.currentTime };
    if (stalled) {
      stalled = false;
      note("resume");
    }
  }

  function sample() {
    moved();
    const still = performance.now() - last.time;
    if (still > STUCK_MS && !video.paused) stall(last.time);
    note("sample");
  }

  function watchElement() {
    video.requestVideoFrameCallback((_, frame) => {
      firstFrame = frame.presentationTime;
      last = { time: firstFrame, position: video.currentTime };
      note("first_frame", firstFrame);
    });
    video.addEventListener("waiting", () => stall(performance.now()));
    video.addEventListener("timeupdate", moved);
    video.addEventListener("playing", moved);
    video.addEventListener("ended", () => note("ended"));
    video.addEventListener("error", () => fail("media", video.error ? video.error.message : "error"));
  }

  function watchLibrary() {
    hls.on(Hls.Events.MANIFEST_LOADED, (_, data) => {
      // hls.js passes over rungs that cannot be played; a ladder without them is another video.
      for (const level of data.levels) {
        const codecs = level.attrs.CODECS;
        if (codecs && !MediaSource.isTypeSupported(`video/mp4; codecs="${codecs}"`)) fail("codec", codecs);
      }
      if (failure) hls.stopLoad();
    });
    hls.on(Hls.Events.MEDIA_ATTACHED, () => {
      video.play().catch((error) => {
        if (error.name !== "AbortError") fail("media", error);
      });
    });
    hls.on(Hls.Events.FRAG_CHANGED, (_, data) => {
      const before = rung;
      rung = data.frag.level;
      if (before !== null && before !== rung) note("switch");
    });
    hls.on(Hls.Events.FRAG_LOADED, (_, data) => {
      const { frag } = data;
      const { loading, loaded } = frag.stats;
      segments.push({
        url: frag.url,
        rung: frag.level,
        segment: typeof frag.sn === "number" ? frag.sn : null, // null: the initialization section
        duration: typeof frag.sn === "number" ? frag.duration * 1000 : null,
        start: loading.start,
        first: loading.first,
        end: loading.end,
        bytes: loaded,
      });
    });
    hls.on(Hls.Events.ERROR, (_, data) => {
      if (!data.fatal) return;
      const status = data.response ? data.response.code : null;
      const kinds = { networkError: "network", mediaError: "media", muxError: "media" };
      const codec = /codec/i.test(data.details);
      fail(codec ? "codec" : kinds[data.type] || "other", data.details, data.url || null, status || null);
    });
  }

  // Fixed phases of a live stream: two watches that begin elsewhere in a segment wait differently long for the next.
  function untilPhase() {
    const { epoch, period } = options;
    if (!epoch || !period) return 0;
    return period - ((((Date.now() - epoch) % period) + period) % period);
  }

  // The lowest rung first, each as long as said, whatever the bandwidth: for what this machine can decode.
  function climb() {
    hls.on(Hls.Events.MANIFEST_PARSED, () => {
      hls.loadLevel = 0;
    });
    let next = 1;
    const climber = setInterval(() => {
      if (next >= hls.levels.length || ended !== null) clearInterval(climber);
      else hls.currentLevel = next++; // at once; nextLevel would wait for the end of a segment
    }, options.step);
  }

  function begin() {
    // hls.js keeps 30 s ahead, or 60 MB where that is more; 60 MB would be all of a watch.
    const settings = { maxBufferSize: 0 };
    if (options.step) settings.startLevel = 0;
    hls = new Hls(settings);
    watchElement();
    watchLibrary();
    began = performance.now();
    note("play", began);
    if (options.step) climb();
    hls.loadSource(options.source);
    hls.attachMedia(video);
    sampler = setInterval(sample, SAMPLE_MS);
  }

  function number(text) {
    return text === null ? null : Number(text);
  }

  // Press play, as the fragment of the URL says: source, live, step (how long each rung), epoch and period.
  function play() {
    const said = new URLSearchParams(location.hash.slice(1));
    options = {
      source: said.get("source"),
      live: said.get("live") === "1",
      step: number(said.get("step")),
      epoch: number(said.get("epoch")),
      period: number(said.get("period")),
    };
    if (!options.source) fail("other", "the URL names no source");
    else if (!Hls.isSupported()) fail("codec", "this browser has no Media Source Extensions");
    else if (!video.requestVideoFrameCallback) fail("other", "this browser has no requestVideoFrameCallback");
    else setTimeout(begin, untilPhase());
    return state();
  }

  function state() {
    return { now: performance.now(), began, firstFrame, failure, ended: video.ended };
  }

  // Stop, and say what was seen.
  function finish() {
    if (began !== null && ended === null) {
      sample();
      ended = performance.now();
    }
    clearInterval(sampler);
    const quality = video.getVideoPlaybackQuality();
    const report = {
      began,
      firstFrame,
      ended,
      failure,
      events,
      segments,
      played: played() * 1000,
      shown: quality.totalVideoFrames - quality.droppedVideoFrames,
      dropped: quality.droppedVideoFrames,
      levels: hls ? hls.levels.map((level) => level.averageBitrate || level.bitrate) : [],
    };
    video.pause();
    if (hls) hls.destroy();
    return report;
  }

  return { play, state, finish };
})();
