"""Pages of templates: each needs nothing but itself, and has the palette as ``css``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design.phrases import counted, sentence

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

Filter = Callable[..., object]

TEMPLATES = Path(__file__).parent / "templates"


def page(template: str, filters: Mapping[str, Filter] | None = None, *, trim: bool = False, **values: object) -> str:
    """A template of ours filled in."""
    made = environment((TEMPLATES,), trim=trim)
    made.filters |= filters or {}
    return made.get_template(template).render(values)


def environment(folders: Sequence[Path], *, trim: bool) -> Environment:
    """The templates of these folders; what is put into them is escaped, and what they are not given is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from trifecta.report.compiled_templates import CompiledTemplates

    made = Environment(
        loader=FileSystemLoader(folders),
        bytecode_cache=CompiledTemplates(trim=trim),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=trim,
        lstrip_blocks=trim,
    )
    made.globals["css"] = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - our own
    made.filters |= {"code": _code, "counted": counted, "sentence": sentence}
    return made


def _code(text: str) -> Markup:
    """What stands between backticks as code, everything else escaped."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped before
