"""The ledger: what is true about every run, and how it may change.

A scheduler starts attempts; a business cares whether a *run* is complete: this job, this scope, this nominal window.
The ledger holds one row for each run, for ever, and everything else hangs on it.

**Identity.** A *line* is a job with a scope; its windows tile time. The part of a line under one zone and grain is a
*series*. A run is (series, nominal, revision): the nominal is what the schedule says in the schedule's own wall clock,
one integer, so that no tzdata release, no retry and no second host can make another key of it. A second revision exists
only where a person reopened a completed run.

**A claim is a row, not a lock.** To *take* a run is to write into its row: state `running`, this attempt's id, a number
one higher than the last (the *fence*), and the instant until which nobody else may judge it gone (the *lease*). Renewals
go to a narrow table beside it. The claim is a short transaction of its own; the work happens outside of any.

**The guard is in the database.** Whatever an attempt writes names its id *and* its number. Completion is two statements
in the transaction that carries the effect: the run is settled where key, attempt, number and state still match, and the
attempt's row is inserted with a NOT NULL column read back from that very row. If the claim is gone there is nothing to
read back, the insert fails, and the failure ends the transaction: the effect cannot be committed by anyone, whatever they
catch. No row count decides whether a commit may happen, and no clock does: clocks decide only when a claim *may be tried*.

**An end is written once.** An attempt lives in its run's row while it is current; the statement that ends it writes its
own row, under a primary key, so that completing twice is an error of the second. Who takes a run over closes the lost
attempt in the same transaction, after raising the fence, never before.

**What a vanished attempt means is a contract**, sealed with each attempt. `transactional`: its effect would have
committed with its completion, so nothing happened: take it again. `idempotent`: the destination remembers the key for a
stated time: within it, again; after it, unknown. `external`: nobody can know: *unknown*, and an unknown run is never
taken again until the same attempt, a probe or a person says what happened. Gone means that the lease has lapsed and,
where every process is on this host, that the claim's file lock is free too.

**What is owed** is one function (`open`): occurrences due since the line's start, minus what is settled, minus what the
catch-up policy drops, and every drop leaves a row or a range with its reason. A line remembers until when its windows
have been opened, so that looking at a settled line costs two reads, and no commit. Windows that never had a row and never
will are a *range*: a month off is one row. A range speaks only for windows without a row of their own.

**One table says what may become of a run** (`states`). It is rendered into the guards of the statements, it is walked by
the tests against the real database, and the picture in the documentation is drawn from it.

**No I/O here.** Operations are `async def` functions without an event loop: they await only statements, the ledger's
time and a holder's pulse (`ask`). A driver of ten lines runs one in a transaction, ours or the caller's; a tester runs
two, statement by statement, through every interleaving. An answer that must be committed before it is told, such as a
run found unknown, is *returned*, as a value or as a refusal that the caller raises after the commit.

Lock order everywhere: line, series, run, rows under it. A verdict comes from a look after the write, never before it.
"""
