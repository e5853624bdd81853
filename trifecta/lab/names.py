"""DNS inside the lab: the zone ``lab`` and names of recorded pages, asked at 127.0.0.53 in every host.

Programs find it as they find DNS anywhere, by getaddrinfo(3), through a private /etc/resolv.conf. The machine's own
files stay as they are: the private ones lie over them in the sandbox's mount namespace, and end with it.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from trifecta.design.errors import CannotError
from trifecta.design.ip import IPV6, version_of
from trifecta.lab import linux, sandbox
from trifecta.lab.host import Host
from trifecta.lab.private_files import NAMESERVER, ORDER, cover

PORT = 53
ZONE = dns.name.from_text("lab.")
RESOLV_CONF = f"# Made by Trifecta for its lab.\nnameserver {NAMESERVER}\nsearch lab\n"
_TTL_S = 60
_SOA = f"ns.lab. trifecta.lab. 1 3600 600 86400 {_TTL_S}"
_HEADER_BYTES = 12
_ID_BYTES = 2
_MOST_KNOWN = 1000  # questions whose answer is kept
_MOST_CONNECTIONS = 64  # TCP connections kept open; the oldest makes room (RFC 7766, section 6.2.3)

_MOST_STRAYS = 1000  # different unknown names that are counted one by one
_OTHERS = "(others)"

Addresses = tuple[str, str] | tuple[str]
"""The addresses of a name: one of IPv4, one of IPv6, or one of each."""


def answer(query: bytes, names: Mapping[str, Addresses], unknown: Callable[[str], None] | None = None) -> bytes | None:
    """The answer to a DNS message; None for what deserves none (an answer, less than a header).

    Names of the zone that are not in ``names`` do not exist (NXDOMAIN). Of names outside the zone those in ``names``
    are answered with authority, all others refused. ``unknown`` is told each name asked for that is not there.
    """
    if len(query) < _HEADER_BYTES or query[2] & 0x80:
        return None
    try:
        request = dns.message.from_wire(query)
    except (dns.exception.DNSException, ValueError):
        # RFC 1035, section 4.1.1: the same id, QR set, rcode 1 (format error), nothing in the sections.
        return query[:2] + bytes([query[2] & 0x79 | 0x80, int(dns.rcode.FORMERR)]) + bytes(8)
    reply = dns.message.make_response(request)
    # RFC 1035, section 4.1.1, for the codes; RFC 9619, section 4: one question, else it is a format error.
    if request.opcode() != dns.opcode.QUERY:
        reply.set_rcode(dns.rcode.NOTIMP)
    elif len(request.question) != 1:
        reply.set_rcode(dns.rcode.FORMERR)
    elif not _resolve(request.question[0], names, reply) and unknown is not None:
        unknown(request.question[0].name.to_text(omit_final_dot=True).lower())
    return reply.to_wire()


def _resolve(question: dns.rrset.RRset, names: Mapping[str, Addresses], reply: dns.message.Message) -> bool:
    """Fill in the reply; whether the name is there."""
    known = {dns.name.from_text(name): addresses for name, addresses in names.items()}
    addresses = known.get(question.name)
    in_zone = question.name.is_subdomain(ZONE)
    if question.rdclass != dns.rdataclass.IN or not (in_zone or addresses):
        reply.set_rcode(dns.rcode.REFUSED)
        return False
    reply.flags |= dns.flags.AA
    if addresses is None and question.name != ZONE:
        reply.set_rcode(dns.rcode.NXDOMAIN)
    for address in addresses or ():
        kind = "AAAA" if version_of(address) == IPV6 else "A"
        if question.rdtype in (dns.rdatatype.from_text(kind), dns.rdatatype.ANY):
            reply.answer.append(dns.rrset.from_text(question.name, _TTL_S, "IN", kind, address))
    apex = ZONE if in_zone else question.name  # a name outside the zone is one of its own
    soa = dns.rrset.from_text(apex, _TTL_S, "IN", "SOA", _SOA)
    if question.name == apex and question.rdtype in (dns.rdatatype.SOA, dns.rdatatype.ANY):
        reply.answer.append(soa)
    if not reply.answer:
        reply.authority.append(soa)  # says that there is nothing, and for how long (RFC 2308, 3)
    return addresses is not None or question.name == ZONE


class Names:
    """Serves the zone in every host and shows programs where to ask, while it is entered; a context manager."""

    def __init__(
        self, hosts: Iterable[Host], names: Mapping[str, Addresses], *, also_at: Mapping[str, str] | None = None
    ) -> None:
        """``names`` maps names like ``b.lab`` to addresses; ``also_at``: further addresses to answer at, by host.

        RuntimeError outside of a sandbox, where the machine's own files would be covered; ValueError for what is no
        name in DNS.
        """
        if not sandbox.entered():
            raise RuntimeError("names are served inside a sandbox only")
        self._hosts = tuple(hosts)
        self._also_at = dict(also_at or {})
        self._strays: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.point(names)

    def point(self, names: Mapping[str, Addresses]) -> None:
        """Answer these names from now on, and no others; ValueError for what is not a DNS name."""
        for name in names:
            try:
                dns.name.from_text(name)
            except (dns.exception.DNSException, UnicodeError) as error:
                raise ValueError(f"{name!r} is not a DNS name: {error}") from error
        self._names = dict(names)
        self._known: dict[bytes, bytes] = {}

    def take_strays(self) -> dict[str, int]:
        """How often each name that is not there was asked for since this was last called."""
        with self._lock:
            strays, self._strays = self._strays, Counter()
        return dict(strays)

    def _reply(self, query: bytes) -> bytes | None:
        """The same for the same question but for its id, at the pace of a name server in C."""
        known, question = self._known, query[_ID_BYTES:]
        if question in known:
            return query[:_ID_BYTES] + known[question]
        reply = answer(query, self._names, self._stray)
        if reply is not None and reply[3] & 15 == dns.rcode.NOERROR and len(known) < _MOST_KNOWN:
            known[question] = reply[_ID_BYTES:]
        return reply

    def _stray(self, name: str) -> None:
        # A resolver that found nothing looks below `lab` too (resolv.conf(5), search): the same question again.
        searched = name.removesuffix(".lab")
        with self._lock:
            if searched != name and (searched in self._names or searched in self._strays):
                return
            self._strays[name if name in self._strays or len(self._strays) < _MOST_STRAYS else _OTHERS] += 1

    def __enter__(self) -> Names:
        """Answer from now on; CannotError when an address is taken or a file cannot be covered."""
        with ExitStack() as undo:
            server = _Server(self._reply)
            undo.callback(server.close)
            for host in self._hosts:
                for address in filter(None, (NAMESERVER, self._also_at.get(host.name))):
                    try:
                        with host.inside():
                            server.listen(address)
                    except OSError as error:
                        raise CannotError(
                            f"names cannot be served at {address} in {host.name}: {error.strerror}; "
                            "stop what uses that address there"
                        ) from error
            server.start()
            for file, text in _files():
                cover(file, text)
                undo.callback(linux.unmount, file)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Uncover the files and stop answering."""
        self._undo.close()


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    buffer: bytearray = field(default_factory=bytearray)


class _Server:
    """One thread that answers on any number of sockets, each in the network it was made in."""

    def __init__(self, reply: Callable[[bytes], bytes | None]) -> None:
        self._reply = reply
        self._selector = selectors.DefaultSelector()
        self._connections: list[_Connection] = []
        self._wake, wake_reader = socket.socketpair()
        self._selector.register(wake_reader, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="names", daemon=True)

    def listen(self, address: str) -> None:
        """Answer at an address of the network the calling thread is in."""
        family = socket.AF_INET6 if version_of(address) == IPV6 else socket.AF_INET
        datagrams = socket.socket(family, socket.SOCK_DGRAM)
        self._selector.register(datagrams, selectors.EVENT_READ, self._datagram)
        datagrams.setblocking(False)
        datagrams.bind((address, PORT))
        listener = socket.socket(family, socket.SOCK_STREAM)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, PORT))
        listener.listen()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._wake.close()
        if self._thread.ident is not None:
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                key.data(key.fileobj)

    def _datagram(self, datagrams: socket.socket) -> None:
        # The asker may be gone, or its queue full: it asks again (resolv.conf(5), attempts).
        with suppress(OSError):
            query, asker = datagrams.recvfrom(4096)
            reply = self._reply(query)
            if reply is not None:
                datagrams.sendto(reply, asker)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection = _Connection(listener.accept()[0])
            connection.socket.setblocking(False)
            self._connections.append(connection)
            self._selector.register(connection.socket, selectors.EVENT_READ, lambda _: self._stream(connection))
            if len(self._connections) > _MOST_CONNECTIONS:
                self._drop(self._connections[0])

    def _stream(self, connection: _Connection) -> None:
        """Messages after their length in two octets (RFC 1035, section 4.2.2)."""
        try:
            chunk = connection.socket.recv(4096)
            connection.buffer += chunk
            buffer = connection.buffer
            while len(buffer) >= 2 and len(buffer) >= (end := 2 + int.from_bytes(buffer[:2])):
                reply = self._reply(bytes(buffer[2:end]))
                del buffer[:end]
                if reply is not None:
                    connection.socket.sendall(len(reply).to_bytes(2) + reply)
        except OSError:
            chunk = b""
        if not chunk:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()


def _files() -> Iterable[tuple[str, str]]:
    """What getaddrinfo reads and what it should say."""
    yield "/etc/resolv.conf", RESOLV_CONF
    order = Path(ORDER)
    if order.exists():
        # Else a resolver of the machine, reached through a socket in the file system, might be asked before DNS.
        text = order.read_text(encoding="utf-8", errors="replace")
        yield str(order), re.sub(r"(?m)^hosts:.*$", "hosts: files dns", text)
