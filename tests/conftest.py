"""Every test sees the pinned tzdata, not the system's copy: the facts about zones in these tests are those of one release."""

import os
import zoneinfo

os.environ["PYTHONTZPATH"] = ""  # for the processes that a test starts
zoneinfo.reset_tzpath(())
