"""Exit codes: what the end of a command tells whoever called it. The numbers are sysexits(3) where it has one."""

DONE = 0
USAGE = 64
UNAVAILABLE = 69
OUR_BUG = 70
UNWRITABLE = 73
CANNOT_CREATE = 73  # of an output, as of a ledger
TRY_AGAIN = 75
NO_PERMISSION = 77
CONFIGURATION = 78
WAITS_FOR_A_PERSON = 79
UNKNOWN = 80
TAKEN_OVER = 81
INTERRUPTED = 130
TIMED_OUT = 124  # as timeout(1)
