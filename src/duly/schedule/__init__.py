"""When is what owed: pure values and arithmetic. A schedule yields occurrences: each has a nominal (what the schedule
says, in its zone), a window of time that it answers for, and an instant from which it is due. `spec` holds the
schedules, `cron` one line of cron, `resolver` the way from wall clock to instants, `keys` the names of runs, `catch_up`
what becomes of windows after downtime. Nothing here reads a clock, does I/O or imports more than it must: a command
wrapper loads this room before it does anything else.
"""
