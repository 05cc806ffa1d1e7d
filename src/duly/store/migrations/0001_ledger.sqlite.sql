-- The ledger on SQLite. Instants are microseconds since 1970 in UTC; durations are microseconds.
--
--   duly_job       a named thing with policies            duly_run       one obligation for a key, for ever
--   duly_version   its schedules, one in force            duly_renewal   the lease of a run, once it was renewed
--   duly_line      a job with a scope: the roster         duly_attempt   one try that has ended, written once
--   duly_series    a line under one zone and grain        duly_text      long text of attempts and runs
--   duly_adhoc     runs outside the schedule, by id       duly_output    an output file about to be moved into place
--   duly_skipped   ranges of windows without rows         duly_event     evidence: who, when, which, why
--   duly_former_name   names that jobs have given up
--   duly_progress  how far an attempt says that it is, told beside its lease
--   duly_probe     who asks what became of a run in doubt, and what was said
--   duly_backfill  past windows that were asked for       duly_backfill_run   the runs that a backfill opened or took on
--   duly_message   what leaves for another system         duly_message_body   what it says
--   duly_message_attempt   one sending that has ended     duly_destination    what senders to one place share
--   duly_source    whose keys are received here           duly_received       one key of a source, in its effect's transaction
--   duly_answer    what a received key was answered       duly_receiving      a key that somebody is working, with a lease
--   duly_alert     what somebody is to be told of         duly_silence        of which jobs nothing is told for a while
--   duly_look      when that was looked for last
--
-- A run's identity is (series, nominal, revision). The nominal is 2 x the civil seconds of what the schedule says, in
-- the schedule's own wall clock, + 1 for the second pass of a repeated hour. While an attempt is current it lives in
-- its run's row; the statement that ends it writes duly_attempt. Read attempts through duly_attempt_readable.
--
-- min_writer: 1

create table duly_meta (
    name  text primary key,
    value text not null
) without rowid;

insert into duly_meta (name, value)
values ('schema', '0'),                       -- the newest migration that was applied
       ('min_writer', '0'),                   -- the oldest release, by the schema it knows, that may write here
       ('ledger_id', lower(hex(randomblob(16)))),
       ('epoch', '1'),                        -- rises when a person says that the ledger went back in time
       ('clock', 'system');                   -- or hand: a test sets it

insert into duly_meta (name, value)           -- goes into the keys that remote systems know effects by
select 'namespace', value
  from duly_meta
 where name = 'ledger_id';

create table duly_migration (
    number     integer primary key,
    name       text    not null,
    sha256     text    not null,              -- of the file as it was applied
    applied_at integer not null,
    by         text    not null
);

-- A clock set by hand, for tests: one row where duly_meta says clock = hand, else none.
create table duly_clock (
    at integer not null
);

create table duly_job (
    id            integer primary key,
    name          text    not null unique,
    first_name    text    not null,           -- what it was registered as; remote systems know its effects by it
    catch_up      text    not null,
    contract      text    not null check (contract in ('transactional', 'idempotent', 'external')),
    remembers     integer,                    -- idempotent: how long the destination deduplicates; null: for ever
    clean_exits   text    not null,           -- exit codes that prove that nothing happened, '75,111'
    retries       integer,                    -- null: not declared
    retry_delay   integer not null,           -- before the first retry; doubles
    retry_ceiling integer not null,
    grace         integer,                    -- null: a tenth of the period, at most an hour
    overlap       integer not null,           -- 1: runs of one line may overlap
    ordered       integer not null,           -- 1: a run waits until the one before it is settled
    lease         integer not null,
    timeout       integer,
    retain        integer,                    -- how long what is settled is kept; null: for ever
    owner         text    not null,
    roster        text    not null check (roster in ('open', 'closed')),
    version       integer,                    -- the schedule version in force; null: never scheduled
    paused_at     integer,                    -- no run of it is started from then on
    paused_until  integer,                    -- and before this; null: until somebody resumes it
    paused_by     text,
    paused_why    text,
    retired_at    integer,                    -- null: it is not retired
    edition       integer not null default (random()), -- another with each change of this row: who remembers it can tell
    created_at    integer not null
);

create trigger duly_job_changed after update on duly_job when new.edition = old.edition
begin
    update duly_job set edition = random() where id = new.id;
end;

-- Names that jobs have given up. They are given to no other job: an old host may still declare them.
create table duly_former_name (
    name   text    primary key,
    job    integer not null references duly_job (id),
    at     integer not null,
    by     text    not null,
    reason text    not null
) without rowid;

create table duly_version (
    job            integer not null references duly_job (id),
    number         integer not null,
    label          text    not null,
    kind           text    not null,
    zone           text    not null,
    grain          text    not null,
    gap            text    not null,
    fold           text    not null,
    at             text    not null,
    "offset"       text    not null,
    lines          text    not null,          -- cron lines, one a row of text
    "interval"     integer not null,
    anchor         integer not null,
    calendar       text    not null,          -- policy, name and days off of a business calendar, or empty
    words          text    not null,
    effective_from integer not null,
    created_at     integer not null,
    by             text    not null,
    reason         text    not null,
    primary key (job, number)
) without rowid;

create table duly_line (
    id              integer primary key,
    job             integer not null references duly_job (id),
    scope           text    not null,
    starts          integer,                  -- nothing due before it is owed; null: not yet seen under a schedule
    ends            integer,                  -- nothing due at or after it is owed; null: no end
    ends_alone      integer,                  -- of a retired job's line: what `ends` was before
    undeclared_at   integer,                  -- since when the code that closes the roster does not name the scope
    opened_until    integer,                  -- the last window that was opened ends there; the next one starts there
    next_due        integer,                  -- the first window that ends after opened_until is due then
    holder_series   integer,                  -- the run that holds the line (no overlap)
    holder_nominal  integer,
    holder_revision integer,
    live_claims     integer not null default 0, -- since a backfill's last one (no overlap): so that neither starves
    paused_at       integer,                  -- as of a job
    paused_until    integer,
    paused_by       text,
    paused_why      text,
    created_at      integer not null,
    unique (job, scope)
);

create table duly_series (
    id      integer primary key,
    line    integer not null references duly_line (id),
    zone    text    not null,
    grain   text    not null,
    horizon integer not null,                 -- a nominal: everything below it was settled and has been pruned
    unique (line, zone, grain)
);

-- What the rules of a zone meant around a window, and where they were read. Shared: most windows of a zone mean the same.
create table duly_zone_facts (
    id          integer primary key,
    zone        text not null,
    release     text not null,
    source      text not null,
    fingerprint text not null,
    unique (zone, release, source, fingerprint)
);

create table duly_run (
    series           integer not null,
    nominal          integer not null,
    revision         integer not null,
    -- Written out: for a list of more than two values SQLite builds a table, at each write.
    state            text    not null check (state = 'open' or state = 'running' or state = 'completed' or state = 'failed'
                                             or state = 'unknown' or state = 'skipped' or state = 'replaced'),
    fence            integer not null,        -- the number of the newest attempt; 0: never attempted
    due              integer,
    window_start     integer,
    window_end       integer,
    resolution       text,
    version          integer,
    zone_facts       integer,                 -- what its bounds were computed from; null: UTC, or no window
    opened_at        integer not null,
    payload          text,                    -- null: never claimed; 'none': claimed without; else scheme:hash
    failures         integer not null,        -- that count against the retries
    retry_at         integer,                 -- failed: null waits for a person
    asked_at         integer,                 -- a person asked for this run: no catch-up policy drops it
    settled_at       integer,
    was              text,                    -- skipped: the state before
    cause            text,                    -- why it is failed, unknown or skipped, in a few words
    first_started_at integer,                 -- of the first attempt of this revision
    attempt_id       blob,                    -- the newest attempt
    started_at       integer,
    lease_until      integer,
    contract         text,                    -- sealed with the attempt, and so is how long its destination remembers
    remembers        integer,
    owner            text,
    trigger          text,
    cancel_number    integer,                 -- the attempt that a person asked to stop; no later one is meant
    primary key (series, nominal, revision)
) without rowid;

create index duly_run_unsettled on duly_run (series, nominal)
    where state = 'open' or state = 'running' or state = 'failed' or state = 'unknown';

create table duly_renewal (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    attempt_id blob    not null,
    until      integer not null,
    primary key (series, nominal, revision)
) without rowid;

create table duly_progress (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    attempt_id blob    not null,
    done       integer not null,
    total      integer,                       -- null: nobody said of how many
    at         integer not null,
    primary key (series, nominal, revision)
) without rowid;

create table duly_probe (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    number     integer not null,              -- of the attempt that is in doubt
    doubt      integer not null,              -- its event: another doubt of the same attempt is asked about anew
    probe_id   blob    not null,              -- who asked last; until next_at nobody else does
    next_at    integer not null,
    asked      integer not null,
    denials    integer not null,              -- how often it was said that it did not happen
    said       text,
    primary key (series, nominal, revision)
) without rowid;

create table duly_attempt (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    number     integer not null,
    attempt_id blob    not null,
    started_at integer not null,              -- read back from the guarded run: null here is a lost claim (I2)
    ended_at   integer not null,
    outcome    text    not null check (outcome = 'completed' or outcome = 'failed' or outcome = 'cancelled'
                                       or outcome = 'lost' or outcome = 'released'),
    contract   text    not null,
    owner      text    not null,
    trigger    text    not null,
    error      text,                          -- the type of an error, or how a child ended
    primary key (series, nominal, revision, number)
) without rowid;

-- Those that were taken over, for whoever looks for them: a few.
create index duly_attempt_lost on duly_attempt (ended_at) where outcome = 'lost';

create table duly_text (
    series   integer not null,
    nominal  integer not null,
    revision integer not null,
    number   integer not null,
    kind     text    not null check (kind in ('error', 'output', 'result', 'evidence', 'stdout', 'stderr')),
    body     text    not null,
    primary key (series, nominal, revision, number, kind)
) without rowid;

create table duly_output (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    attempt_id blob    not null,
    path       text    not null,
    size       integer not null,
    sha256     text    not null,
    at         integer not null,
    primary key (series, nominal, revision)
) without rowid;

create table duly_adhoc (
    series  integer not null references duly_series (id),
    id      text    not null,
    nominal integer not null,
    state   text,                             -- what its run was when it was forgotten; null: the run is there
    primary key (series, id)
) without rowid;

create index duly_adhoc_nominal on duly_adhoc (series, nominal);

create table duly_skipped (
    series       integer not null references duly_series (id),
    from_nominal integer not null,
    to_nominal   integer not null,            -- half-open
    reason       text    not null,
    at           integer not null,
    by           text    not null,
    primary key (series, from_nominal)
) without rowid;

-- A durable request to owe past windows. Nothing here is counted: a row that each completion writes would be a hot one. What
-- has become of its windows is read from their runs, and the row is locked only by who claims for it, or changes it.
create table duly_backfill (
    id           integer primary key,
    series       integer not null references duly_series (id),
    asked        text    not null,            -- the range as it was written
    from_nominal integer not null,
    to_nominal   integer not null,            -- half-open
    since        integer not null,            -- the windows of the range, as bounds: the first starts, the last ends there
    until        integer not null,
    what         text    not null,            -- missing, skipped, failed, completed; with commas
    direction    text    not null check (direction in ('oldest', 'newest')),
    concurrency  integer not null,
    stop_after   integer,                     -- failures that wait for a person; null: it goes on
    state        text    not null check (state in ('active', 'paused', 'stopped', 'cancelled', 'done')),
    place        integer not null,            -- the windows before it, in its direction, were opened or passed over
    counts_from  integer not null,            -- what failed before is forgiven: it was started, or resumed, since
    asked_at     integer not null,
    by           text    not null,
    reason       text    not null,
    said_by      text    not null,            -- who or what brought it into its state, and why
    said         text    not null
);

create index duly_backfill_live on duly_backfill (series)
    where state = 'active' or state = 'paused' or state = 'stopped';

-- Narrow, and written once: a run's own row is not touched for it.
create table duly_backfill_run (
    series   integer not null,
    nominal  integer not null,
    revision integer not null,
    backfill integer not null references duly_backfill (id),
    was_owed integer not null,                -- 1: it was open before, and goes back to its line if the backfill is cancelled
    primary key (series, nominal, revision)
) without rowid;

-- The outbox. A message commits with its run's completion and goes to a system whose transactions are not ours. While an
-- attempt at it is current it lives in its message's row, as with runs.
create table duly_message (
    series         integer not null,
    nominal        integer not null,
    revision       integer not null,
    number         integer not null,          -- its place among the messages of its run: they go in this order
    name           text    not null,
    destination    text    not null,          -- declared by whoever delivers; never an address
    idempotency_key text   not null,          -- what the receiver knows it by, whichever attempt sends it
    digest         text    not null,          -- SHA-256 of its type and body: the same name has no other body
    state          text    not null check (state = 'pending' or state = 'sending' or state = 'delivered' or state = 'unknown'
                                           or state = 'refused' or state = 'dead' or state = 'skipped'),
    fence          integer not null,          -- the number of the newest attempt; 0: never attempted
    failures       integer not null,          -- attempts that ended otherwise than by delivering, since it was last said that it is to be sent
    noted_at       integer not null,
    due_at         integer,                   -- when it may be attempted; null: after the one before it, or a person's word
    settled_at     integer,
    cause          text,                      -- why it is what it is, in a few words of ours: never of a body
    attempt_id     blob,
    started_at     integer,
    lease_until    integer,
    owner          text,
    first_sent_at  integer,                   -- of the first attempt that may have reached the receiver: it remembers from then
    doubt_number   integer,                   -- the first attempt of which nobody knows whether it did; null: there is none
    doubted_at     integer,                   -- when the newest such was doubted: a probe waits for some time after it
    stored         integer not null,          -- 1: the receiver would repeat its answer, so that sending again tells nothing
    denials        integer not null,          -- how often in a row a probe said that it did not happen
    probe_id       blob,                      -- who asks now, and until when nobody else does
    probe_until    integer,
    primary key (series, nominal, revision, number),
    unique (series, nominal, revision, name)
) without rowid;

create index duly_message_due on duly_message (destination, due_at)
    where state = 'pending' or state = 'sending' or state = 'unknown' or state = 'refused' or state = 'dead';

create index duly_message_sending on duly_message (destination) where state = 'sending';

create index duly_message_unsettled on duly_message (series, nominal)
    where state = 'pending' or state = 'sending' or state = 'unknown' or state = 'refused' or state = 'dead';

create table duly_message_body (
    series       integer not null,
    nominal      integer not null,
    revision     integer not null,
    number       integer not null,
    content_type text    not null,
    body         blob    not null,
    primary key (series, nominal, revision, number)
);

create table duly_message_attempt (
    series     integer not null,
    nominal    integer not null,
    revision   integer not null,
    number     integer not null,
    fence      integer not null,
    attempt_id blob    not null,
    started_at integer not null,
    ended_at   integer not null,
    outcome    text    not null check (outcome = 'delivered' or outcome = 'not sent' or outcome = 'refused'
                                       or outcome = 'unknown' or outcome = 'lost'),
    owner      text    not null,
    said       text    not null,              -- the evidence of a delivery, the cause of anything else
    primary key (series, nominal, revision, number, fence)
) without rowid;

-- Locked by whoever takes messages for it: its rate and its concurrency are for all who send, wherever they are.
create table duly_destination (
    name    text    primary key,
    next_at integer not null                  -- the rate allows the next message then
) without rowid;

-- The receiver's side: keys of messages that others sent, each written in the transaction of its effect.
create table duly_source (
    id         integer primary key,
    name       text    not null unique,       -- whose keys these are: an endpoint, and its client where there are several
    remembers  integer,                       -- how long a key is remembered; null: for ever
    horizon    integer not null,              -- an instant: of keys first sent before it some have been forgotten
    created_at integer not null
);

create table duly_received (
    source      integer not null references duly_source (id),
    key         text    not null,
    payload     text    not null,             -- scheme:hash
    first_sent  integer,                      -- the sender's word, the same at each delivery; null: nobody said
    counts_from integer not null,             -- its age: since it was first sent, or else received
    received_at integer not null,
    receipt     blob    not null,             -- the delivery that applied it
    primary key (source, key)
) without rowid;

create index duly_received_age on duly_received (source, counts_from);

create table duly_answer (
    receipt     blob    not null unique,
    received_at integer not null,             -- read back from the receipt's own row: null here is a receipt that is gone (I2)
    answered_at integer not null,
    status      integer,
    headers     text    not null,             -- JSON: pairs of name and value
    body        blob    not null
);

-- A courtesy to duplicates that come meanwhile, and never the guard.
create table duly_receiving (
    source  integer not null references duly_source (id),
    key     text    not null,
    payload text    not null,
    holder  blob    not null,
    until   integer not null,
    primary key (source, key)
) without rowid;

create table duly_event (
    id         integer primary key,
    at         integer not null,
    kind       text    not null,
    job        integer,                       -- whose it is, also of a run's; null: the ledger's own
    series     integer,
    nominal    integer,
    revision   integer,
    attempt_id blob,
    by         text    not null,
    reason     text    not null,
    detail     text    not null,
    before     text    not null,              -- what was so, where somebody or a policy changed it; empty: nothing changed
    after      text    not null
);

create index duly_event_run on duly_event (series, nominal) where series is not null;

create index duly_event_at on duly_event (at, id);

create index duly_event_job on duly_event (job, at, id) where job is not null;

-- Alerts: what somebody is to be told of, from when it was first seen to when it was over. What is told leaves through the
-- outbox, in the transaction that writes it down here.
create table duly_alert (
    id        integer primary key,
    kind      text    not null check (kind in ('late', 'failed', 'unknown', 'stuck', 'superseded', 'drift')),
    subject   text    not null,               -- what it is about, by ids that no rename changes
    job       integer references duly_job (id), -- null: about no job
    scope     text    not null,
    about     text    not null,               -- a run's key, a line or a destination, as it was called then
    note      text    not null,               -- what is wrong, in a few words
    step      text    not null,               -- the command that says more, or mends it
    state     text    not null check (state in ('open', 'recovered', 'noted')), -- noted: it has happened, and recovers never
    told      text    not null check (told in ('', 'open', 'recovered', 'noted')), -- the state that was told last
    since     integer not null,
    raised_at integer not null,
    recovered_at integer
);

-- One flip is recorded once, whoever looks.
create unique index duly_alert_open on duly_alert (kind, subject) where state = 'open';

create unique index duly_alert_noted on duly_alert (kind, subject) where state = 'noted';

create index duly_alert_untold on duly_alert (id) where state = 'open' or told = 'open';

create index duly_alert_subject on duly_alert (subject, kind, id);

create table duly_silence (
    id     integer primary key,
    job    integer not null references duly_job (id),
    scope  text,                              -- null: all scopes
    kind   text,                              -- null: all kinds
    since  integer not null,
    until  integer not null,
    by     text    not null,
    reason text    not null
);

-- One row: each look takes a number, and what it found is written only while no later one has begun.
create table duly_look (
    number      integer not null,             -- of the newest look
    looked_at   integer not null,             -- when that began
    recorded    integer not null,             -- the newest whose finding is on record; 0: none yet
    recorded_at integer not null,
    first_at    integer not null              -- of the first that is on record: what had happened before is no news
);

insert into duly_look (number, looked_at, recorded, recorded_at, first_at) values (0, 0, 0, 0, 0);

create view duly_attempt_readable as
select a.series, a.nominal, a.revision, a.number, lower(hex(a.attempt_id)) as attempt_id, a.started_at, a.ended_at,
       a.outcome, a.contract, a.owner, a.trigger, a.error,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.started_at / 1000000.0, 'unixepoch') as started,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.ended_at / 1000000.0, 'unixepoch') as ended
  from duly_attempt a
union all
select r.series, r.nominal, r.revision, r.fence, lower(hex(r.attempt_id)), r.started_at, null,
       r.state, r.contract, r.owner, r.trigger, r.cause,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at / 1000000.0, 'unixepoch'), null
  from duly_run r
 where r.state in ('running', 'unknown');

create view duly_run_readable as
select j.name as job, l.scope, s.zone, s.grain, a.id as adhoc,
       case when s.grain <> 'adhoc' then strftime('%Y-%m-%dT%H:%M:%S', r.nominal / 2, 'unixepoch') end as nominal,
       r.nominal & 1 as second_pass, r.revision, r.state, r.cause, r.fence,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.due / 1000000, 'unixepoch') as due,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.window_start / 1000000, 'unixepoch') as window_start,
       strftime('%Y-%m-%dT%H:%M:%SZ', r.window_end / 1000000, 'unixepoch') as window_end,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.started_at / 1000000.0, 'unixepoch') as started,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.settled_at / 1000000.0, 'unixepoch') as settled,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.retry_at / 1000000.0, 'unixepoch') as retry,
       r.series, r.nominal as stored_nominal    -- with revision: what duly_attempt_readable names a run by
  from duly_run r
  join duly_series s on s.id = r.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  left join duly_adhoc a on a.series = r.series and a.nominal = r.nominal;

-- What is to be seen of messages: no body.
create view duly_message_readable as
select j.name as job, l.scope, s.zone, s.grain, a.id as adhoc,
       case when s.grain <> 'adhoc' then strftime('%Y-%m-%dT%H:%M:%S', m.nominal / 2, 'unixepoch') end as nominal,
       m.nominal & 1 as second_pass, m.revision, m.number, m.name, m.destination, m.idempotency_key, m.state, m.cause,
       m.fence as attempts, m.doubt_number is not null as in_doubt,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.noted_at / 1000000.0, 'unixepoch') as noted,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.first_sent_at / 1000000.0, 'unixepoch') as first_sent,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.due_at / 1000000.0, 'unixepoch') as due,
       strftime('%Y-%m-%dT%H:%M:%fZ', m.settled_at / 1000000.0, 'unixepoch') as settled,
       m.series, m.nominal as stored_nominal
  from duly_message m
  join duly_series s on s.id = m.series
  join duly_line l on l.id = s.line
  join duly_job j on j.id = l.job
  left join duly_adhoc a on a.series = m.series and a.nominal = m.nominal;

-- Without payloads and bodies: they are nobody's business here.
create view duly_received_readable as
select s.name as source, r.key, lower(hex(r.receipt)) as receipt, a.status,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.first_sent / 1000000.0, 'unixepoch') as first_sent,
       strftime('%Y-%m-%dT%H:%M:%fZ', r.received_at / 1000000.0, 'unixepoch') as received,
       strftime('%Y-%m-%dT%H:%M:%fZ', a.answered_at / 1000000.0, 'unixepoch') as answered
  from duly_received r
  join duly_source s on s.id = r.source
  left join duly_answer a on a.receipt = r.receipt;

-- For jobs in any language: complete the run in the transaction that carries its effect, on the same database.
--   insert into duly_complete (attempt_id, attempt) values ($DULY_ATTEMPT_ID, $DULY_ATTEMPT)
-- It fails, and rolls the whole transaction back, when the claim is gone (I2).
create view duly_complete as
select lower(hex(attempt_id)) as attempt_id, fence as attempt
  from duly_run
 where state in ('running', 'unknown');

create trigger duly_complete_run instead of insert on duly_complete
begin
    insert into duly_attempt (series, nominal, revision, number, attempt_id, started_at, ended_at, outcome,
           contract, owner, trigger, error)
    select r.series, r.nominal, r.revision, r.fence, r.attempt_id, r.started_at,
           coalesce((select at from duly_clock), cast((julianday('now') - 2440587.5) * 86400000000 as integer)),
           'completed', r.contract, r.owner, r.trigger, null
      from duly_run r
     where (r.state = 'open' or r.state = 'running' or r.state = 'failed' or r.state = 'unknown')
       and r.state in ('running', 'unknown')
       and lower(hex(r.attempt_id)) = replace(lower(new.attempt_id), '-', '')
       and r.fence = cast(new.attempt as integer);
    select raise(rollback, 'duly: another attempt took this run over, or it has already ended; nothing was committed')
     where changes() = 0;
    update duly_run
       set state = 'completed', cause = null,
           settled_at = coalesce((select at from duly_clock),
                                 cast((julianday('now') - 2440587.5) * 86400000000 as integer))
     where (state = 'open' or state = 'running' or state = 'failed' or state = 'unknown')
       and state in ('running', 'unknown')
       and lower(hex(attempt_id)) = replace(lower(new.attempt_id), '-', '')
       and fence = cast(new.attempt as integer);
end;

-- What the planner is to think of the tables that grow (sqlite.org/fileformat2.html#stat1tab). Without it an index of the few
-- rows that are not settled looks no better than the primary key, and each poke would read all runs of its line.
analyze sqlite_schema;

insert into sqlite_stat1 (tbl, idx, stat)
values ('duly_run', 'duly_run', '1000000 10000 1 1'),
       ('duly_run', 'duly_run_unsettled', '50 10 1'),
       ('duly_message', 'duly_message', '1000000 10000 2 2 1'),
       ('duly_message', 'duly_message_unsettled', '50 10 1'),
       ('duly_message', 'duly_message_due', '50 10 1'),
       ('duly_message', 'duly_message_sending', '10 5');
