"""What runs inside Firefox, in JavaScript.

``WATCH`` and the functions after it are called in the browser's own window (BiDi's ``moz:scope: chrome``), which is
where requests can be seen without the cost of BiDi's network events (docs/browsers.md). They use interfaces of Firefox
(nsIHttpChannel, nsITimedChannel, nsITransportSecurityInfo) that are not part of any standard: whatever a version
lacks is null. ``DECODED`` is an expression in the page.
"""

WATCH = """(forced, others) => {
  const thirdParties = new Set(others.split(" "));
  const watch = globalThis.trifecta = {
    opened: new Map(), done: [], given: new Set(), refused: new Set(), cached: new Set(), crashed: 0,
  };
  const times = ["asyncOpenTime", "domainLookupStartTime", "domainLookupEndTime", "connectStartTime",
    "tcpConnectEndTime", "secureConnectionStartTime", "connectEndTime", "requestStartTime", "responseStartTime",
    "responseEndTime"];
  const collect = (visit) => {
    const headers = [];
    try { visit({visitHeader: (name, value) => headers.push([name, value])}); } catch (e) {}
    return headers;
  };
  watch.describe = (subject, ended) => {
    const row = {ended, refused: watch.refused.delete(subject.QueryInterface(Ci.nsIHttpChannel).channelId)};
    const say = (name, get) => { try { row[name] = get() ?? null; } catch (e) { row[name] = null; } };
    const http = subject.QueryInterface(Ci.nsIHttpChannel);
    say("id", () => String(http.channelId));
    say("url", () => http.URI.spec);
    say("host", () => http.URI.host);
    say("method", () => http.requestMethod);
    say("context", () => http.loadInfo.originAttributes.userContextId);
    say("type", () => http.loadInfo.externalContentPolicyType);
    say("main", () => http.isMainDocumentChannel);
    say("error", () => http.status ? ChromeUtils.getXPCOMErrorName(http.status) : null);
    say("tls_error", () => http.securityInfo.errorCodeString);
    say("protocol", () => http.QueryInterface(Ci.nsIHttpChannelInternal).protocolVersion);
    say("local_port", () => http.QueryInterface(Ci.nsIHttpChannelInternal).localPort);
    say("remote_address", () => http.QueryInterface(Ci.nsIHttpChannelInternal).remoteAddress);
    say("status", () => http.responseStatus);
    say("status_text", () => http.responseStatusText);
    say("mime", () => http.contentType);
    say("cached", () => watch.cached.delete(http.channelId));
    say("body_bytes", () => http.encodedBodySize);
    say("transfer_bytes", () => http.transferSize);
    say("request_bytes", () => http.requestSize);
    say("upload_bytes", () => http.QueryInterface(Ci.nsIUploadChannel).uploadStream.available());
    say("resumed", () => http.securityInfo.resumed);
    say("tls_version", () => http.securityInfo.protocolVersion);
    say("cipher", () => http.securityInfo.cipherName);
    const timed = subject.QueryInterface(Ci.nsITimedChannel);
    for (const name of times) say(name, () => timed[name]);
    say("initiator", () => timed.initiatorType);
    row.request_headers = collect((visitor) => http.visitRequestHeaders(visitor));
    row.response_headers = collect((visitor) => http.visitOriginalResponseHeaders(visitor));
    return row;
  };
  watch.observer = {observe(subject, topic) {
    if (topic == "ipc:content-shutdown") {
      try { if (subject.QueryInterface(Ci.nsIPropertyBag2).getPropertyAsBool("abnormal")) watch.crashed += 1; }
      catch (e) {}
      return;
    }
    if (!(subject instanceof Ci.nsIHttpChannel)) return;
    if (topic == "http-on-opening-request") {
      watch.opened.set(subject.channelId, subject);
    } else if (topic == "http-on-examine-response") {
      if (!forced || subject.QueryInterface(Ci.nsIHttpChannelInternal).protocolVersion == forced) return;
      if (thirdParties.has(subject.QueryInterface(Ci.nsIHttpChannel).URI.host)) return;
      watch.refused.add(subject.channelId);
      subject.cancel(Cr.NS_ERROR_FAILURE);
    } else if (topic == "http-on-examine-cached-response") {
      watch.cached.add(subject.channelId);
    } else if (!watch.given.has(subject.channelId)) {  // a channel may stop twice
      watch.given.add(subject.channelId);
      watch.opened.delete(subject.channelId);  // not there where a redirect leads to
      watch.done.push(watch.describe(subject, true));
    }
  }};
  for (const topic of ["http-on-opening-request", "http-on-examine-response", "http-on-examine-cached-response",
    "http-on-stop-request", "ipc:content-shutdown"])
    Services.obs.addObserver(watch.observer, topic);
  return null;
}"""
"""Describe every request when it stops. The numbers are of the channel: microseconds since 1970 where they end in
``Time``, 0 for what did not happen. A response over another protocol than ``forced`` is refused, but from ``others``
(hosts, with blanks between them); "" takes all."""

FORCED = """async (url) => {
  const {NetUtil} = ChromeUtils.importESModule("resource://gre/modules/NetUtil.sys.mjs");
  const forced = async () => {
    const channel = NetUtil.newChannel({uri: url, loadUsingSystemPrincipal: true}).QueryInterface(Ci.nsIHttpChannel);
    channel.loadFlags |= Ci.nsICachingChannel.LOAD_ONLY_FROM_CACHE;
    await new Promise((resolve) => NetUtil.asyncFetch(channel, resolve));
    try { return channel.getRequestHeader("Alt-Used") != ""; } catch (e) { return false; }
  };
  for (let tries = 0; tries < 200; tries += 1) {
    if (await forced()) return true;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return false;
}"""
"""Wait until HTTP/3 is what a request for ``url`` would take. Firefox keeps the mapping in its store of alternative
services, which it reads when a request first needs it; what came before goes over TCP. The requests made here may be
answered from the cache alone, which is empty, so that they send nothing; the field Alt-Used (RFC 7838, section 5) tells
that the mapping holds."""

TAKE = """() => {
  const watch = globalThis.trifecta;
  const open = [...watch.opened.values()].map((each) => watch.describe(each, false));
  for (const id of watch.opened.keys()) watch.given.add(id);
  watch.opened.clear();
  return watch.done.splice(0).concat(open);
}"""
"""Hand over what was seen and forget it, requests that have not ended too."""

CRASHES = """() => globalThis.trifecta.crashed"""

CONNECTED = """(context) => {
  for (const each of globalThis.trifecta.opened.values())
    if (each.isMainDocumentChannel && each.loadInfo.originAttributes.userContextId == context)
      return each.QueryInterface(Ci.nsITimedChannel).requestStartTime > 0;
  return true;
}"""
"""Whether the request for the page has been sent."""

INTERNAL_ID = """(userContext) => ChromeUtils.importESModule(
  "chrome://remote/content/shared/UserContextManager.sys.mjs").UserContextManager.getInternalIdById(userContext)"""
"""The number by which Firefox knows a user context of BiDi."""

AGENT = """(agent) => {
  const own = Cc["@mozilla.org/network/protocol;1?name=http"].getService(Ci.nsIHttpProtocolHandler).userAgent;
  Services.prefs.setStringPref("general.useragent.override", `${own} ${agent}`);
  return null;
}"""
"""Have requests say who asks, behind the browser's own user agent."""

NAME = """(host, address) => {
  Cc["@mozilla.org/network/native-dns-override;1"].getService(Ci.nsINativeDNSResolverOverride)
    .addIPOverride(host, address);
  return null;
}"""
"""Have a name stand for an address without asking for it."""

CLOSE_CONNECTIONS = """() => { Services.obs.notifyObservers(null, "net:cancel-all-connections"); return null; }"""
"""What ``nsHttpHandler`` takes as: close every connection. Cache, tickets and alternative services stay."""

FILM_START = """async (rate) => {
  await new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve), 200));  // the tab takes its size
  // "Waiting for...", which lies over the page's lower edge.
  document.getElementById("statuspanel")?.style.setProperty("display", "none", "important");
  Services.prefs.setIntPref("layout.frame_rate", rate);
  await windowUtils.startCompositionRecording();
  return null;
}"""
"""Keep every frame that the compositor makes of the window, as Mozilla's own visual metrics do. Drawing the page from
outside (BiDi's captureScreenshot) makes it paint earlier than it would. The frames are kept in memory as they are, 5 MB
each, so there are ``rate`` of them a second at most."""

FILM_STOP = """async (width) => {
  const film = await windowUtils.stopCompositionRecording(false);
  Services.prefs.clearUserPref("layout.frame_rate");
  const page = gBrowser.selectedBrowser.getBoundingClientRect();
  const scale = Math.min(1, width / page.width);
  const canvas = new OffscreenCanvas(Math.round(page.width * scale), Math.round(page.height * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(1, 0, 0, -1, 0, canvas.height);
  const frames = [];
  for (const frame of film.frames) {
    const whole = await createImageBitmap(await (await fetch(frame.dataUri)).blob());
    const from = whole.height - page.y - page.height;
    context.drawImage(whole, page.x, from, page.width, page.height, 0, 0, canvas.width, canvas.height);
    whole.close();
    const jpeg = await canvas.convertToBlob({type: "image/jpeg", quality: 0.6});
    const data = new Uint8Array(await jpeg.arrayBuffer());
    let text = "";
    for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
    frames.push([film.recordingStart + frame.timeOffset, btoa(text)]);
  }
  return frames;
}"""
"""The frames, turned (the software compositor's first line is the lowest) and cut to the page, ``width`` pixels wide at
most; times in milliseconds since 1970. A frame holds only what was drawn anew, and is clear elsewhere: it comes over
the one before."""

DECODED = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((each) => [each.name, each.decodedBodySize])"""
"""Octets of content of each resource after decoding, which only the page knows; 0 for those of another origin that
does not allow it (Timing-Allow-Origin)."""
