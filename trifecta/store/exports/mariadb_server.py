"""Where a MariaDB is and who asks: of a URL, the environment and MariaDB's own file."""

from __future__ import annotations

import getpass
import os
from configparser import Error as FormatError
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trifecta.design.errors import UserError
from trifecta.design.extras import LazyModule

optionfile: Any = LazyModule("pymysql.optionfile")

_PORT = 3306
_SOCKET = "/run/mysqld/mysqld.sock"
_TIMEOUT_S = 10


@dataclass(frozen=True)
class Server:
    """What a connection is opened with."""

    host: str
    """Empty: by the socket."""
    port: int
    socket: str
    user: str
    password: str = field(repr=False)
    database: str
    tls: bool

    def arguments(self) -> dict[str, str | int | bool]:
        """For ``pymysql.connect``, without TLS."""
        place: dict[str, str | int] = (
            {"host": self.host, "port": self.port} if self.host else {"unix_socket": self.socket}
        )
        return {
            **place,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "charset": "utf8mb4",
            "local_infile": True,
            "autocommit": False,
            "connect_timeout": _TIMEOUT_S,
        }


def of_url(url: str) -> Server:
    """UserError for a URL of another form, and for a file that cannot be read."""
    parted = urlsplit(url)
    database = unquote(parted.path).strip("/")
    if not database or "/" in database or parted.query:
        raise UserError(f"--to {parted.scheme}://: the URL has the form {parted.scheme}://USER@HOST:{_PORT}/DATABASE")
    client_options = _client()
    return Server(
        host=parted.hostname or "",
        port=parted.port or _PORT,
        socket=os.environ.get("MYSQL_UNIX_PORT") or client_options.get("socket", _SOCKET),
        user=unquote(parted.username or "") or client_options.get("user") or getpass.getuser(),
        password=os.environ.get("MYSQL_PWD") or client_options.get("password", ""),
        database=database,
        tls=parted.scheme == "mariadbs",
    )


def _client() -> dict[str, str]:
    """User, password and socket of ``~/.my.cnf``, as far as they are there; files that it includes are not read."""
    path = Path("~/.my.cnf").expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"~/.my.cnf cannot be read ({type(error).__name__}); mend it") from None
    read = optionfile.Parser()
    try:
        read.read_string("\n".join(line for line in text.splitlines() if "=" in line or line.startswith("[")))
    except FormatError:  # it would quote the line, in which the password may stand
        raise UserError("~/.my.cnf is not in the format of MariaDB's option files") from None
    names = ("user", "password", "socket")
    return {name: str(read.get("client", name)) for name in names if read.has_option("client", name)}
