"""What a plain install leaves out: packages that are heavy, or that few commands want, and the extra of each."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from trifecta.design.errors import CannotError


@dataclass(frozen=True)
class Extra:
    """An extra of the package (``pyproject.toml``): the modules it brings, and what wants them."""

    modules: tuple[str, ...]
    wanted_by: str


EXTRAS = {
    "browser": Extra(
        ("playwright", "websockets", "brotli"), "`trifecta page`, `trifecta run page` and other visits in browsers"
    ),
    "video": Extra(("playwright", "websockets", "brotli"), "`trifecta run video` and other studies with videos"),
    "capture": Extra(
        ("pyarrow", "pylsqpack"), "`trifecta trace`, and the packets of a captured run in `trifecta report`"
    ),
    "containers": Extra(("docker",), "`trifecta run chain --set place=docker-bridge` and other services in containers"),
    "cluster": Extra(("ray",), "`trifecta run --cluster HOST:PORT ...` and other runs on a cluster"),
    "ui": Extra(("starlette", "uvicorn"), "`trifecta ui`"),
    "hosts": Extra(("asyncssh",), "`trifecta run --host client=ssh://HOST ...` and other studies with `hosts`"),
    "notebook": Extra(
        ("marimo", "ipykernel", "pandas", "polars", "pyarrow"),
        "`trifecta notebook`, and the frames of a run in Python (`run.trials.df()`)",
    ),
    "exports": Extra(
        ("obstore", "pymysql", "boto3", "opentelemetry"),
        "`trifecta export RUN --to s3://...` and other stores (`trifecta export --help`)",
    ),
}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra].modules if importlib.util.find_spec(name) is None]


def remedy(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'trifecta[{extra}]'"


def load(module: str) -> Any:
    """Import a module of an extra; CannotError that names the extra where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        extra = next((name for name, one in EXTRAS.items() if package in one.modules), None)
        if extra is None or error.name is None or error.name.partition(".")[0] != package:
            raise
        sentence = f"the package {package} is not installed; it is for {EXTRAS[extra].wanted_by}"
        raise CannotError(f"{sentence}; run: {remedy(extra)}") from error


class LazyModule:
    """A module of an extra that is imported when it is first used: the modules around it can be without."""

    def __init__(self, module: str) -> None:
        """Nothing is imported yet."""
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """What the module has; CannotError as of `load`."""
        return getattr(load(self._module), name)
