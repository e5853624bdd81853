"""Services of a compose file as servers: what the lab does as they say, what changes nothing here, what is refused.

https://github.com/compose-spec/compose-spec/blob/main/spec.md; no program of Docker reads the file, and nothing of
it but the one service counts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from trifecta.design.builds import COMPOSE, ENDINGS, KNOWN_OF_SERVICE, ImageBuild, ServerProgram, ServerService
from trifecta.design.document import Place, Section, did_you_mean, parse_flag, parse_text
from trifecta.design.quantity import QuantityError
from trifecta.design.server_data import KNOWN, VARIABLE, parse_template, read_known, split_words
from trifecta.design.yaml_text import parse_document

ReadFile = Callable[[str], tuple[str, str]]
"""The name of a file as it is written -> its text, and its name in full; QuantityError when it cannot be read."""

HEEDED = ("image", "build", "entrypoint", "command", "environment", "volumes", "working_dir", "network_mode")
IGNORED = (
    "ports",
    "expose",
    "restart",
    "container_name",
    "hostname",
    "user",
    "healthcheck",
    "labels",
    "annotations",
    "logging",
    "profiles",
    "pull_policy",
    "stop_signal",
    "stop_grace_period",
)
"""What changes nothing of what is measured: one container, on the host's network, as root like every server."""
_NOT_HERE = {
    "networks": "the container has the network of the server's host; remove it",
    "depends_on": "nothing runs beside the server; remove it",
    "links": "nothing runs beside the server; remove it",
    "deploy": "it is one container, and what it may use the study says; remove it",
    "privileged": "a container has what Docker gives it; remove it",
    "env_file": "is not read; write its variables under environment",
    "extends": "is not followed; write the service out",
    "secrets": "are not made; put the files beside this one, under volumes",
    "configs": "are not made; put the files beside this one, under volumes",
}
_EXAMPLE = "compose:./compose.yaml#web"
_MOUNT = "./conf:/etc/conf:ro"


def read_compose(text: str, read: ReadFile) -> ServerService:
    """The service of ``compose:FILE#SERVICE``; UserError or QuantityError for what is wrong with it or its file."""
    name, _, service = text.removeprefix(COMPOSE).rpartition("#")
    if not name.endswith(ENDINGS) or not service:
        raise QuantityError(f"{text!r} is not {COMPOSE}FILE#SERVICE; write for example {_EXAMPLE}")
    written, file = read(name)
    root = parse_document(written, file, begins="services:").root()
    services = root.section("services")
    if not services.mapping:
        raise root.error("services", "has none; list the server's there, with its image or build")
    if service not in services.mapping:
        known = [each for each in services.mapping if each.isprintable()]
        raise services.error(None, f"no service {service!r}; {did_you_mean(service, known)}")
    section = services.section(service)
    ignored = tuple(each for each in IGNORED if each in section)
    return replace(read_service(section, posixpath.dirname(file)), ignored=ignored)


def read_defined(section: Section) -> ServerService:
    """A service as a study holds it, with the folder of its file; UserError for the first that is wrong."""
    section.allow("folder", "service", "ignored")
    if "folder" not in section:
        raise section.error("folder", f"is missing; give that of the compose file in full, or write {_EXAMPLE}")
    folder = section.parse("folder", _in_full, "")
    ignored = tuple(section.parse_value(place, item, _ignored) for place, item in section.items("ignored"))
    return replace(read_service(section.section("service"), folder), ignored=ignored)


def read_service(section: Section, folder: str) -> ServerService:
    """A service of a compose file in ``folder``, but for what is ignored; UserError for the first that is wrong."""
    _refuse_others(section)
    known = section.section(KNOWN_OF_SERVICE)
    known.allow("archive", *KNOWN)
    entrypoint, command = _words(section, "entrypoint"), _words(section, "command")
    environment = _pairs(section, "environment", _template)
    program = ServerProgram((*entrypoint, *command), version=(), environment=environment)
    build, archive = _build(section), known.parse("archive", _below, "")
    image = "" if build else _image(section, archive)
    section.parse("network_mode", _network, "")
    return ServerService(
        folder=folder,
        program=read_known(known, program, at=section),
        image=image,
        archive=archive,
        build=build,
        entrypoint=entrypoint,
        volumes=_volumes(section),
        working_dir=section.parse("working_dir", _absolute, ""),
    )


def _refuse_others(section: Section) -> None:
    for name in section.mapping:
        if name in _NOT_HERE:
            raise section.error(name, _NOT_HERE[name])
        if not name.startswith("x-") and name not in (*HEEDED, *IGNORED):
            raise section.error(name, f"is not done here; remove it ({did_you_mean(name, HEEDED)})")


def _image(section: Section, archive: str) -> str:
    """The name of the image in its archive, where none is built."""
    name = section.parse("image", _unescaped, "")
    if not name:
        raise section.error("image", "is missing; give one, or build: a folder with a Dockerfile")
    if not archive:
        what = f"{name!r} is not here, and there is no registry in the lab"
        remedy = "write it beside the file (docker save NAME -o image.tar)"
        raise section.error("image", f"{what}; {remedy}, and add {KNOWN_OF_SERVICE}: {{archive: ./image.tar}}")
    return name


def _build(section: Section) -> ImageBuild | None:
    written = section.raw("build")
    if written is None:
        return None
    if not isinstance(written, dict):
        return ImageBuild(section.parse("build", _below, ""))
    inner = section.section("build")
    inner.allow("context", "dockerfile", "args", "target")
    return ImageBuild(
        context=inner.parse("context", _below, "."),
        dockerfile=inner.parse("dockerfile", _below, "Dockerfile").removeprefix("./"),
        arguments=_pairs(inner, "args", _unescaped),
        target=inner.parse("target", _unescaped, ""),
    )


def _words(section: Section, key: str) -> tuple[str, ...]:
    """The words of a command line or of a list; none where the image's own count."""
    if key not in section:
        return ()
    if isinstance(section.raw(key), list):
        words = tuple(section.parse_value(place, item, _template) for place, item in section.items(key))
    else:
        words = section.parse(key, lambda value: split_words(_template(value)), ())
    if not words or not words[0]:
        raise section.error(key, "has no word; give one, or remove it, and the image's own counts")
    return words


def _pairs(section: Section, key: str, parse: Callable[[Any], str]) -> dict[str, str]:
    """Variables: ``{NAME: VALUE}``, or a list of ``NAME=VALUE``."""
    written = section.raw(key)
    entries: list[tuple[Place, str, Any]]
    if isinstance(written, dict):
        entries = [((*section.place, key, name), name, value) for name, value in written.items()]
    else:
        entries = []
        for place, item in section.items(key):
            name, equals, value = section.parse_value(place, item, parse_text).partition("=")
            entries.append((place, name, value if equals else None))
    pairs: dict[str, str] = {}
    for place, name, value in entries:
        if not VARIABLE.fullmatch(name):
            raise section.document.error(place, f"{name!r} is not a variable: letters, digits and '_'; rename it")
        if value is None:
            raise section.document.error(place, f"{name} would have this machine's value; write one, such as {name}=1")
        pairs[name] = section.parse_value(place, value, parse)
    return pairs


def _volumes(section: Section) -> tuple[tuple[str, str], ...]:
    """Files and folders below the file's folder, and where the container finds them, to be read."""
    return tuple(
        _long_volume(Section(section.document, place, item))
        if isinstance(item, dict)
        else section.parse_value(place, item, _short_volume)
        for place, item in section.items("volumes")
    )


def _short_volume(value: Any) -> tuple[str, str]:
    text = _unescaped(value)
    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    if not source.startswith((".", "/", "~")):
        raise QuantityError(f"{text!r} is no file or folder beside this file; write for example {_MOUNT}")
    if mode != "ro":
        raise QuantityError(f"{text!r} could be written to; write {_MOUNT}, and have the server write to {{state}}")
    return _downwards(source), _rooted(target)


def _long_volume(section: Section) -> tuple[str, str]:
    section.allow("type", "source", "target", "read_only")
    for key in ("source", "target"):
        if key not in section:
            raise section.error(key, f"is missing; give it, or write for example {_MOUNT}")
    if section.parse("type", parse_text, "") != "bind":
        raise section.error("type", f"only files and folders are mounted; write bind, or for example {_MOUNT}")
    if not section.parse("read_only", parse_flag, False):
        raise section.error("read_only", "it could be written to; write true, and have the server write to {state}")
    return section.parse("source", _mounted, ""), section.parse("target", _absolute, "")


def _mounted(value: Any) -> str:
    path = _below(value)
    if ":" in path:
        raise QuantityError(f"{path!r} has a colon, which ends a path in a compose file; rename it")
    return path


def _unescaped(value: Any) -> str:
    """A text without the variables that compose would fill in; ``$$`` is a dollar (compose-spec, interpolation)."""
    if value is None:
        raise QuantityError('is empty; write "" for an empty text, or remove it')
    text = parse_text(value)
    if "\0" in text:
        raise QuantityError("has an octet of value 0, which nothing can be given; remove it")
    if "$" in text.replace("$$", ""):
        raise QuantityError(f"{text!r} has a variable, and none is filled in; write its value, or $$ for a dollar")
    return text.replace("$$", "$")


def _template(value: Any) -> str:
    return parse_template(_unescaped(value))


def _below(value: Any) -> str:
    return _downwards(_unescaped(value))


def _downwards(text: str) -> str:
    """A path from the file's folder downwards, such as ``./conf``."""
    path = posixpath.normpath(text)
    if not text or text.startswith(("/", "~")) or "://" in text or path == ".." or path.startswith("../"):
        raise QuantityError(f"{text!r} does not lie below the folder of its file; put it there, as in ./conf")
    return path if path == "." else f"./{path}"


def _absolute(value: Any) -> str:
    return _rooted(_unescaped(value))


def _rooted(text: str) -> str:
    """A path in the container."""
    path = posixpath.normpath(text)
    if not text.startswith("/") or path.strip("/") == "" or ":" in path:
        raise QuantityError(f"{text!r} is no path in the container; give one in full, such as /etc/conf")
    return path


def _in_full(value: Any) -> str:
    text = parse_text(value)
    if not text.startswith("/") or "\0" in text:
        raise QuantityError(f"{text!r} is not a folder's path in full; give that of the compose file")
    return text


def _ignored(value: Any) -> str:
    text = parse_text(value)
    if text not in IGNORED:
        raise QuantityError(f"{text!r} is none of {', '.join(IGNORED)}; remove it")
    return text


def _network(value: Any) -> str:
    text = parse_text(value)
    if text != "host":
        raise QuantityError(f"{text!r}: the container has the network of the server's host; write host, or remove it")
    return text
