"""What options of a server are in nginx's words."""

from __future__ import annotations

from trifecta.implementations.server import ServerOptions


def timeouts(options: ServerOptions) -> list[str]:
    """A limit for the head of a request and for each read of its content, and one for each write of the response.

    Not Go's: between two writes, not for the whole response (ngx_http_core_module, send_timeout).
    """
    read, write = options.read_timeout_ns, options.write_timeout_ns
    names = ("client_header_timeout", "client_body_timeout") if read is not None else ()
    lines = [f"{name} {_milliseconds(read)};" for name in names]
    return lines + ([] if write is None else [f"send_timeout {_milliseconds(write)};"])


def _milliseconds(time_ns: int | None) -> str:
    """Rounded up, as a time of 0 would be none."""
    return f"{-(-(time_ns or 0) // 1_000_000)}ms"


def flag(value: bool) -> str:
    """``on`` or ``off``."""
    return "on" if value else "off"
