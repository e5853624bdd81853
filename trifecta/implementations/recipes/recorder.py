"""mitmproxy (https://mitmproxy.org), through which `trifecta page record URL` loads a site, in its own environment."""

from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.python_packages import PythonPackages

PROGRAM = PROGRAMS / "recorder" / "recorder.py"
# The last version for Python 3.11 wants a pyperclip that has no wheel; a later one does for what nobody here uses.
RECIPE = PythonPackages("recorder", PROGRAMS / "recorder" / "requirements.lock", overridden=True)
