"""What duly costs, measured. `python -m bench` runs every suite and writes one file of figures; each suite also runs alone.

side_by_side.py    floors, duly and its peers on the same work: entries.py says who, places.py where
  contestant.py      what all of them have in common: the work, the user's table, the line of JSON
  contestants/       floors and modes of duly, a file each
  peers/             other libraries, a file each; environments/ has what each needs, pinned
start, burst       what a command costs, alone and among many
writers            who gets to write while eight do without a pause, and what readers see meanwhile
daemon, outbox     what a daemon and a relay do in a second
grid, scale        what is asked of large ledgers
partitions         what partitions of PostgreSQL would change
schedule           what schedules cost
figure.py          the form in which each suite says what it measured
report/            the page docs/benchmarks.md, its tables and pictures, made of the file alone
"""
