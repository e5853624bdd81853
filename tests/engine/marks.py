"""The marks of tests that put the engine between namespaces."""

from __future__ import annotations

import pytest

from tests.engine.netns import ENGINE, can_make_namespaces

IN_NAMESPACES = [
    pytest.mark.lab,
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]
