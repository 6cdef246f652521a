"""Size of the campaigns of `make stress`."""

import os
from typing import Final

#: True if they are to be as large as they can be, for hours.
IS_FULL: Final = os.environ.get("FULL") == "1"
