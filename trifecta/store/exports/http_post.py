"""HTTP POST to a server of data over one connection: answered or not, said in one line; nothing is tried twice."""

from __future__ import annotations

import gzip
import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from trifecta.design.errors import CannotError
from trifecta.store.exports import error_messages

_TIMEOUT_S = 60.0
_MOST = 10_000  # octets of an answer that are looked at


@dataclass(frozen=True)
class HttpResponse:
    """What a server said."""

    status: int
    reason: str
    content: bytes

    @property
    def message(self) -> str:
        """Its text, or else its reason: a line in which nothing is secret."""
        return error_messages.line(self.content.decode("utf-8", "replace") or self.reason)


@dataclass
class Poster:
    """A connection to one server."""

    where: str
    """What to call it."""
    host: str
    port: int
    tls: bool
    fields: Mapping[str, str] = field(repr=False)
    """Of every request; secrets may be among them."""
    packed: bool = True
    """Whether content goes in gzip."""

    def __post_init__(self) -> None:
        """Nothing is sent yet."""
        self._connection: http.client.HTTPConnection
        if self.tls:
            context = ssl.create_default_context()
            self._connection = http.client.HTTPSConnection(self.host, self.port, timeout=_TIMEOUT_S, context=context)
        else:
            self._connection = http.client.HTTPConnection(self.host, self.port, timeout=_TIMEOUT_S)

    def post(self, path: str, content: bytes) -> HttpResponse:
        """Send content; CannotError where no answer comes."""
        fields = {**self.fields, "Content-Encoding": "gzip"} if self.packed else self.fields
        packed = gzip.compress(content, 1, mtime=0) if self.packed else content
        try:
            self._connection.request("POST", path, packed, fields)
            answer = self._connection.getresponse()
            content_read = answer.read(_MOST)
            answer.read()
        except (OSError, http.client.HTTPException) as error:
            reason = error_messages.line(error)
            raise CannotError(f"{self.where}: no answer ({reason}); is a server running there?") from None
        return HttpResponse(answer.status, answer.reason, content_read)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()
