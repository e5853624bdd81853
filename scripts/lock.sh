#!/usr/bin/env bash
# Writes the versions of everything in .venv to requirements.lock, which set-up installs.
set -euo pipefail
cd "$(dirname "$0")/.."
{
    echo "# Versions that set-up installs; made by 'make lock' after a change of pyproject.toml. A constraints file:"
    echo "# what is not needed on a Python version is not installed there."
    .venv/bin/python -m pip freeze --exclude-editable --disable-pip-version-check
} >requirements.lock
