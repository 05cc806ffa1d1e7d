"""Truths: what holds of every ledger, as statements that find where it does not. They look only, and at every row.

The operations keep them, by their guards; these are for what no operation did: a disk that lied, a row that was changed by
hand, a copy that is none. Here is what can be seen in one snapshot; the histories check what may become of what, after each
commit (`duly.testing.histories.invariants`).
"""

from __future__ import annotations

from duly.ledger import message_states
from duly.ledger.ask import Statement, every, one
from duly.ledger.backfill_states import ors
from duly.ledger.records import RunId
from duly.records import record

EXAMPLES = 3  # of what is wrong, that are named


@record
class Truth:
    """One thing that holds. `times` counts where it does not, `some` are a few of those."""

    name: str
    says: str
    times: Statement
    some: Statement


def _truth(name: str, says: str, sql: str) -> Truth:
    """`sql` finds the runs of which it does not hold, each with a word; or what else, with a null for the series."""
    word = name.replace("-", "_")
    return Truth(
        name,
        says,
        Statement(f"times_{word}", f"select count(*) from ({sql}) untrue"),
        Statement(f"some_{word}", f"select * from ({sql}) untrue limit {EXAMPLES}"),
    )


def _same(a: str, b: str) -> str:
    """Being of the same run."""
    return f"{a}.series = {b}.series and {a}.nominal = {b}.nominal and {a}.revision = {b}.revision"


def _of_no_run(table: str) -> str:
    return f"""
select t.series, t.nominal, t.revision, 'a row of {table}'
  from duly_{table} t
 where not exists (select 1 from duly_run r where {_same("r", "t")})
"""


_UNSETTLED = ors("m.state", message_states.UNSETTLED)
_COMPLETED_ONCE = f"a.outcome = 'completed' and {_same('a', 'r')}"

TRUTHS: tuple[Truth, ...] = (
    _truth(
        "completions-have-attempts",
        "every completed run has the attempt that completed it (I1)",
        f"""
select r.series, r.nominal, r.revision, r.state
  from duly_run r
 where (r.state = 'completed'
        and not exists (select 1
                          from duly_attempt a
                         where {_COMPLETED_ONCE} and a.number = r.fence and a.attempt_id = r.attempt_id))
    or (r.state = 'replaced' and not exists (select 1 from duly_attempt a where {_COMPLETED_ONCE}))
""",
    ),
    _truth(
        "one-completion",
        "a run is completed once in each of its revisions (I1)",
        """
select series, nominal, revision, cast(count(*) as text) || ' completions'
  from duly_attempt
 where outcome = 'completed'
 group by series, nominal, revision
having count(*) > 1
""",
    ),
    _truth(
        "completions-complete",
        "an attempt that completed its run left it completed, unless it was reopened",
        f"""
select r.series, r.nominal, r.revision, r.state
  from duly_run r
  join duly_attempt a on {_same("a", "r")}
 where a.outcome = 'completed' and r.state not in ('completed', 'replaced')
""",
    ),
    _truth(
        "settled-since",
        "a run has an instant at which it was settled if, and only if, it is; and nothing of it is to be tried again then",
        """
select r.series, r.nominal, r.revision, r.state
  from duly_run r
 where (r.state in {settled} and r.settled_at is null)
    or ({unsettled} and r.settled_at is not null)
    or (r.state in ('completed', 'replaced') and r.cause is not null)
    or (r.state <> 'skipped' and r.was is not null)
    or (r.state = 'skipped' and coalesce(r.was, 'failed') not in ('open', 'failed'))
""",
    ),
    _truth(
        "current-attempts",
        "a run that is being worked, or is unknown, names its attempt, which is not on record as ended (I2)",
        f"""
select r.series, r.nominal, r.revision, r.state
  from duly_run r
 where r.state in ('running', 'unknown')
   and (r.fence < 1 or r.attempt_id is null or r.started_at is null or r.contract is null
        or (r.state = 'running' and r.lease_until is null)
        or exists (select 1 from duly_attempt a where {_same("a", "r")} and a.number = r.fence))
""",
    ),
    _truth(
        "fences",
        "no attempt has a higher number than its run gave out (I3)",
        f"""
select r.series, r.nominal, r.revision, 'attempt ' || cast(max(a.number) as text) || ', fence ' || cast(r.fence as text)
  from duly_run r
  join duly_attempt a on {_same("a", "r")}
 group by r.series, r.nominal, r.revision, r.fence
having max(a.number) > r.fence
""",
    ),
    _truth(
        "horizons",
        "no run that is not settled, nor one with such a message, lies below the horizon of its series (I7)",
        f"""
select r.series, r.nominal, r.revision, r.state
  from duly_run r
  join duly_series s on s.id = r.series
 where r.nominal < s.horizon
   and ({{unsettled}}
        or exists (select 1 from duly_message m where {_same("m", "r")} and {_UNSETTLED}))
""",
    ),
    _truth(
        "one-live-revision",
        "of a window one revision lives, the newest (I1)",
        """
select r.series, r.nominal, min(r.revision), cast(count(*) as text) || ' revisions'
  from duly_run r
 group by r.series, r.nominal
having count(*) - sum(case when r.state = 'replaced' then 1 else 0 end) <> 1
    or max(case when r.state = 'replaced' then 0 else r.revision end) <> max(r.revision)
""",
    ),
    _truth(
        "windows-tile",
        "no two windows of a line overlap (I9)",
        """
select series, nominal, 1, 'it starts before the one before it has ended'
  from (select r.series, r.nominal, r.window_start,
               lag(r.window_end) over (partition by s.line order by r.window_start, r.window_end) as ended
          from duly_run r
          join duly_series s on s.id = r.series
         where r.revision = 1 and r.window_start is not null and r.window_end is not null) windows
 where window_start < ended
""",
    ),
    _truth(
        "series-of-runs",
        "every run is of a series that is known, and every one outside the schedule has its id",
        """
select r.series, r.nominal, r.revision, 'series ' || cast(r.series as text)
  from duly_run r
  left join duly_series s on s.id = r.series
 where s.id is null
    or (s.grain = 'adhoc' and not exists (select 1
                                            from duly_adhoc a
                                           where a.series = r.series and a.nominal = r.nominal and a.state is null))
""",
    ),
    _truth(
        "runs-of-rows",
        "what hangs on a run is of one that is there",
        "union all".join(
            _of_no_run(table)
            for table in ("attempt", "text", "renewal", "progress", "probe", "output", "message", "backfill_run")
        ),
    ),
    _truth(
        "messages-of-completions",
        "a message is of a run that was completed, and one that is not settled of one that was not reopened (I1)",
        f"""
select m.series, m.nominal, m.revision, 'message ' || m.name
  from duly_message m
  join duly_run r on {_same("r", "m")}
 where r.state not in ('completed', 'replaced') or ({_UNSETTLED} and r.state <> 'completed')
""",
    ),
    _truth(
        "messages-settled-since",
        "a message has an instant at which it was settled if, and only if, it is; and no attempt of it a higher number",
        f"""
select m.series, m.nominal, m.revision, 'message ' || m.name
  from duly_message m
 where ({_UNSETTLED} and m.settled_at is not null)
    or (not {_UNSETTLED} and m.settled_at is null)
    or m.fence < (select coalesce(max(a.fence), 0)
                    from duly_message_attempt a
                   where {_same("a", "m")} and a.number = m.number)
""",
    ),
    _truth(
        "parts-of-messages",
        "what hangs on a message is of one that is there, and one that is to be sent has its body",
        f"""
select t.series, t.nominal, t.revision, 'the body of a message'
  from duly_message_body t
 where not exists (select 1 from duly_message m where {_same("m", "t")} and m.number = t.number)
union all
select t.series, t.nominal, t.revision, 'an attempt at a message'
  from duly_message_attempt t
 where not exists (select 1 from duly_message m where {_same("m", "t")} and m.number = t.number)
union all
select m.series, m.nominal, m.revision, 'message ' || m.name
  from duly_message m
 where {_UNSETTLED}
   and not exists (select 1 from duly_message_body t where {_same("m", "t")} and m.number = t.number)
""",
    ),
    _truth(
        "skipped-ranges",
        "a skipped range is of a series that is known, and not empty",
        """
select k.series, k.from_nominal, 1, 'a skipped range'
  from duly_skipped k
 where k.from_nominal >= k.to_nominal or not exists (select 1 from duly_series s where s.id = k.series)
""",
    ),
    _truth(
        "versions-in-force",
        "the schedule in force of a job is one of its versions, the newest",
        """
select null, 0, 0, 'job ' || j.name
  from duly_job j
 where coalesce(j.version, 0) <> (select coalesce(max(v.number), 0) from duly_version v where v.job = j.id)
""",
    ),
    _truth(
        "answers-of-keys",
        "an answer is of a key that was received",
        """
select null, 0, 0, 'an answer without its key'
  from duly_answer a
 where not exists (select 1 from duly_received r where r.receipt = a.receipt)
""",
    ),
    _truth(
        "schema",
        "the newest migration on record is the schema that the ledger says it has",
        """
select null, 0, 0, 'schema ' || m.value
  from duly_meta m
 where m.name = 'schema' and m.value <> (select cast(max(g.number) as text) from duly_migration g)
""",
    ),
)


@record
class Untrue:
    """A run, or `what` else, of which a truth does not hold."""

    run: RunId | None
    what: str


@record
class Finding:
    """A truth, of how many rows it does not hold, and some of them."""

    truth: Truth
    times: int
    examples: list[Untrue]


async def findings() -> list[Finding]:
    """Every truth with what is against it. Looks only, in one snapshot if that is what it runs in."""
    return [await _finding(truth) for truth in TRUTHS]


async def _finding(truth: Truth) -> Finding:
    times = await one(truth.times, int) or 0
    return Finding(truth, times, await every(truth.some, _untrue) if times else [])


def _untrue(series: int | None, nominal: int, revision: int, what: str) -> Untrue:
    return Untrue(None if series is None else RunId(series, nominal, revision), what)
