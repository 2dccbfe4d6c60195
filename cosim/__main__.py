"""`python -m cosim` is the command `cosim`."""

import sys

from cosim.cli import main

sys.exit(main())
