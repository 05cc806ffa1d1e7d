"""`python -m duly`: the command line."""

from __future__ import annotations

import sys

from duly.cli import main

sys.exit(main())
