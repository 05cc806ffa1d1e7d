"""Every test sees the pinned tzdata, not the system's copy: what tests know of zones is true of one release."""

import os
import zoneinfo

os.environ["PYTHONTZPATH"] = ""  # for the processes that a test starts
zoneinfo.reset_tzpath(())
