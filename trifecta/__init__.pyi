"""What ``import trifecta`` offers, as types: the module itself imports none of it before it is asked for."""

from trifecta.api.measuring import race as race
from trifecta.api.measuring import run as run
from trifecta.api.reading import Run as Run
from trifecta.api.reading import open as open
from trifecta.design.errors import CannotError as CannotError
from trifecta.design.errors import TrifectaError as TrifectaError
from trifecta.design.errors import UserError as UserError

__version__: str
