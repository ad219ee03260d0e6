"""`python -m minitorch.bench`: the same as `minitorch bench`."""

import sys

from .command import main

sys.exit(main())
