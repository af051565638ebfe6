"""`python -m pasca` is the command `pasca`."""

import sys

from pasca.cli import main

if __name__ == "__main__":
    sys.exit(main())
