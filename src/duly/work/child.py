"""A child process, watched without a thread: its signals, its group, its time, and whoever must be told to stop.

Signals are blocked and waited for (sigtimedwait(2)), so that one loop sees the child's end, a signal to forward, and the
next thing that is due by the ledger's clock. The child gets the signal mask and dispositions that this process was started
with. On a terminal it stays in the foreground group, where the keyboard reaches it by itself; elsewhere it leads a group
of its own, so that a time-out reaches a whole pipeline.
"""

from __future__ import annotations

import errno
import os

from duly.records import record
from duly.times import SECOND
from duly.work.waiting import LOOK_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence

    from duly.store.sqlite import SqliteStore
else:
    import _signal as signal  # the module `signal` adds enums, which would cost a wrapper a quarter of its start

KILL_AFTER = 10 * SECOND  # between SIGTERM and SIGKILL
FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # who sends one wants the whole command to end
_WATCHED = (*FORWARDED, signal.SIGCHLD)
_SENT_BY_KERNEL = 0x80  # siginfo's si_code of a key press: the foreground group has it already (sigaction(2))
_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by the interpreter, not by whoever started it


@record
class Ended:
    """How a child ended: by itself with `code`, or by `signal`; `why` it was told to stop, if it was."""

    code: int
    signal: int
    why: str


class CannotExecute(Exception):
    """The command cannot be executed: `code` is 127 when it is not found, else 126."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Child:
    """A running child. `stop` tells it to end; `wait` returns when it has."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        inherit: Sequence[int] = (),
        output: int | None = None,
    ) -> None:
        self._in_foreground = _on_terminal()
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        self._reported: tuple[int, int] | None = None
        self._why = ""
        self.asked_to_end = 0  # the signal that somebody sent to end us
        self._kill_at: int | None = None
        try:
            self.pid = self._spawn(argv, environment, inherit, output)
        except OSError as e:
            self.forget()
            raise _cannot_execute(argv[0], e) from e

    def _spawn(
        self, argv: Sequence[str], environment: Mapping[str, str], inherit: Sequence[int], output: int | None
    ) -> int:
        for descriptor in inherit:
            os.set_inheritable(descriptor, True)
        actions = [] if output is None else [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
        group = {} if self._in_foreground else {"setpgroup": 0}
        return os.posix_spawnp(
            argv[0],
            list(argv),
            environment,
            file_actions=actions,
            setsigmask=self._before,
            setsigdef=_SET_BY_PYTHON,
            **group,  # type: ignore[arg-type]  # no group: the parent's
        )

    def wait(self, store: SqliteStore, wake: Callable[[], int | None]) -> Ended:
        """Watch the child until it ends.

        `wake` is called when its last answer has come (by the ledger's clock) and after each signal; it may call `stop`,
        and answers when it wants to be called again.
        """
        wake_at = wake()
        while not self._over():
            due = min((at for at in (wake_at, self._kill_at) if at is not None), default=None)
            seen = signal.sigtimedwait(_WATCHED, _patience(store, due))
            if seen is not None and seen.si_signo != signal.SIGCHLD:
                self._forward(seen)
            now = store.now()
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self._signal(signal.SIGKILL)
            if wake_at is not None and now >= wake_at:
                wake_at = wake()
        assert self._reported is not None
        self.forget()
        return Ended(*self._reported, self._why)

    def stop(self, why: str, now: int) -> None:
        """Tell the child to end: SIGTERM, and SIGKILL if it takes too long. The first reason stands."""
        if not self._why:
            self._why = why
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped child cannot hear it
            self._kill_at = now + KILL_AFTER

    def forget(self) -> None:
        """Restore this process's own signal mask."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _over(self) -> bool:
        if self._reported is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                self._reported = (0 if by_signal else os.WEXITSTATUS(status), by_signal)
        return self._reported is not None

    def _forward(self, seen: signal.struct_siginfo) -> None:
        if seen.si_signo in ENDING:
            self.asked_to_end = seen.si_signo
        if not (self._in_foreground and seen.si_code == _SENT_BY_KERNEL):
            self._signal(seen.si_signo)

    def _signal(self, number: int) -> None:
        try:
            if self._in_foreground:
                os.kill(self.pid, number)
            else:
                os.killpg(self.pid, number)
        except OSError as e:
            if e.errno != errno.ESRCH:  # it has just ended
                raise


def _on_terminal() -> bool:
    """Whether this process is in the foreground group of the terminal on its standard input."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _patience(store: SqliteStore, due: int | None) -> float:
    """Seconds to wait for a signal at most. A clock set by hand is looked at each few milliseconds."""
    if store.clock_by_hand:
        return LOOK_SECONDS
    if due is None:
        return 3600.0
    return max(0.0, min((due - store.now()) / SECOND, 3600.0))


def _cannot_execute(command: str, error: OSError) -> CannotExecute:
    return CannotExecute(127 if error.errno == errno.ENOENT else 126, f"{command}: {error.strerror}")
