"""A child process, watched without a thread: its signals, its group, its time, and whoever must be told to stop.

Signals are blocked and waited for (sigwaitinfo(2)), so that one loop sees the child's end, a signal to forward, and the
next thing that is due by the ledger's clock; and blocked from before a claim until its end is written down, so that none
of them can leave a run half told. The child gets the signal mask and dispositions that this process was started with. On a
terminal it stays in the foreground group, where the keyboard reaches it by itself; elsewhere it leads a group of its own,
so that a time-out reaches a whole pipeline.
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
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Protocol

    from duly.store.protocol import Store
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
_SENT_BY_KERNEL = 0x80  # siginfo's si_code of a key press (sigaction(2))
_BY_KEY = (signal.SIGINT, signal.SIGQUIT)  # a hangup, which the kernel sends too, may reach the session's leader alone
_GROUP_LOOK_SECONDS = 0.05  # a group's end sends no signal to whoever is not its parent
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


if TYPE_CHECKING:

    class Sent(Protocol):
        """A signal as somebody sent it (siginfo_t)."""

        @property
        def si_signo(self) -> int: ...

        @property
        def si_code(self) -> int: ...

    class Ears(Protocol):
        """How whoever runs a child hears what happens meanwhile: its end, and what others want of it."""

        asked_to_end: int  # the signal that said so, 0 while nobody has

        @property
        def before(self) -> Iterable[int]:
            """The signal mask that the child is to have."""

        def wait(self, seconds: float) -> Sent | None: ...

        def end_is_wanted(self) -> bool: ...

        def watch(self, pid: int) -> None: ...

        def in_foreground(self) -> bool: ...


class Signals:
    """The signals sent to this process: blocked until `restore`, seen only by whoever waits for them.

    What this process was started to ignore (nohup, a shell's background) stays ignored. `asked_to_end` is the signal that
    somebody sent to end us, 0 while nobody has.
    """

    def __init__(self) -> None:
        heeded = tuple(number for number in FORWARDED if signal.getsignal(number) != signal.SIG_IGN)
        self._ending = tuple(number for number in ENDING if number in heeded)
        self._watched = (*heeded, signal.SIGCHLD, signal.SIGALRM)
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # how a child ended would be thrown away
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.before = signal.pthread_sigmask(signal.SIG_BLOCK, self._watched)
        self.asked_to_end = 0

    def wait(self, seconds: float) -> signal.struct_siginfo | None:
        """The next signal, a child's end among them; None if none came in so many seconds, or perhaps a little earlier."""
        # Not sigtimedwait(2) with a time: where a stop (Ctrl-Z) interrupts it for longer than that, Python answers with
        # whatever lay on the stack.
        if seconds > 0:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            seen: signal.struct_siginfo | None = signal.sigwaitinfo(self._watched)
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            seen = signal.sigtimedwait(self._watched, 0)
        if seen is None or seen.si_signo == signal.SIGALRM:
            return None
        if seen.si_signo in self._ending:
            self.asked_to_end = seen.si_signo
        return seen

    def end_is_wanted(self) -> bool:
        """Whether somebody has sent a signal to end us. One that is noticed here goes to no child."""
        seen = signal.sigtimedwait(self._ending, 0)
        if seen is not None:
            self.asked_to_end = seen.si_signo
        return bool(self.asked_to_end)

    def watch(self, pid: int) -> None:
        """A child was started: its end is a signal like any other."""

    def in_foreground(self) -> bool:
        """Whether a child shall be where the keyboard reaches it: in the foreground group of the terminal on our input."""
        return _on_terminal()

    def restore(self) -> None:
        """Restore this process's own signal mask. What came too late for any child is forgotten: all is written down."""
        while signal.sigtimedwait(self._watched, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)


class Child:
    """A running child. `stop` tells it to end; `wait` returns when it has."""

    def __init__(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        signals: Ears,
        *,
        inherit: Sequence[int] = (),
        outputs: tuple[int, int] | None = None,
    ) -> None:
        self._in_foreground = signals.in_foreground()
        self._signals = signals
        self._reported: tuple[int, int] | None = None
        self._why = ""
        self._kill_at: int | None = None
        if not argv[0]:
            raise CannotExecute(127, "the command has no name")
        try:
            self.pid = self._spawn(argv, environment, inherit, outputs)
            signals.watch(self.pid)
        except OSError as e:
            raise _cannot_execute(argv[0], e) from e

    def _spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        inherit: Sequence[int],
        outputs: tuple[int, int] | None,
    ) -> int:
        for descriptor in inherit:
            os.set_inheritable(descriptor, True)
        actions = [(os.POSIX_SPAWN_DUP2, given, own) for own, given in enumerate(outputs or (), start=1)]
        group = {} if self._in_foreground else {"setpgroup": 0}

        def spawn(words: list[str]) -> int:
            return os.posix_spawnp(
                words[0],
                words,
                environment,
                file_actions=actions,
                setsigmask=self._signals.before,
                setsigdef=_SET_BY_PYTHON,
                **group,  # type: ignore[arg-type]  # no group: the parent's
            )

        try:
            return spawn(list(argv))
        except OSError as e:
            if e.errno != errno.ENOEXEC:
                raise
            return spawn(
                ["/bin/sh", _found(argv[0], environment), *argv[1:]]
            )  # a script without #!, as execvp(3) has it

    def wait(self, store: Store, wake: Callable[[], int | None]) -> Ended:
        """Watch the child until it ends.

        `wake` is called when its last answer has come (by the ledger's clock) and after each signal; it may call `stop`,
        and answers when it wants to be called again.
        """
        wake_at = wake()
        while not self._over():
            due = min((at for at in (wake_at, self._kill_at) if at is not None), default=None)
            patience = _patience(store, due)
            seen = self._signals.wait(patience if self._reported is None else min(patience, _GROUP_LOOK_SECONDS))
            if seen is not None and seen.si_signo != signal.SIGCHLD:
                self._forward(seen)
            now = store.now()
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self._signal(signal.SIGKILL)
            if wake_at is not None and now >= wake_at:
                wake_at = wake()
        assert self._reported is not None
        return Ended(*self._reported, self._why)

    def stop(self, why: str, now: int) -> None:
        """Tell the child to end: SIGTERM, and SIGKILL if it takes too long. The first reason stands."""
        if not self._why:
            self._why = why
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped child cannot hear it
            self._kill_at = now + KILL_AFTER

    def _over(self) -> bool:
        """Whether the child has ended; of one that was told to stop, whether its group has, or was killed."""
        if self._reported is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
                self._reported = (0 if by_signal else os.WEXITSTATUS(status), by_signal)
        return self._reported is not None and (self._kill_at is None or not self._group_is_left())

    def _group_is_left(self) -> bool:
        """Whether processes that the child started outlived it, as a pipeline's that does not heed SIGTERM."""
        if self._in_foreground:
            return False
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # one of them has become another user
            pass
        return True

    def _forward(self, seen: Sent) -> None:
        pressed = seen.si_code == _SENT_BY_KERNEL and seen.si_signo in _BY_KEY
        if not (self._in_foreground and pressed):  # else the foreground group has it already
            self._signal(seen.si_signo)

    def _signal(self, number: int) -> None:
        try:
            if self._in_foreground:
                if self._reported is None:
                    os.kill(self.pid, number)
            else:
                os.killpg(self.pid, number)
        except OSError as e:
            if e.errno not in (errno.ESRCH, errno.EPERM):  # it has just ended, or has become another user
                raise


def _on_terminal() -> bool:
    """Whether this process is in the foreground group of the terminal on its standard input."""
    try:
        return os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _patience(store: Store, due: int | None) -> float:
    """Seconds to wait for a signal at most. A clock set by hand is looked at each few milliseconds."""
    if store.clock_by_hand:
        return LOOK_SECONDS
    if due is None:
        return 3600.0
    return max(0.0, min((due - store.now()) / SECOND, 3600.0))


def _found(command: str, environment: Mapping[str, str]) -> str:
    """The file that a command's name means, for a shell, which would look for it in the working directory first."""
    if "/" in command:
        return command
    from shutil import which

    return which(command, path=environment.get("PATH")) or command


def _cannot_execute(command: str, error: OSError) -> CannotExecute:
    # A whole command line written as one word may hold a secret.
    named = (
        command
        if len(command) <= 200 and not any(sign.isspace() or sign in "=@" for sign in command)
        else "the command"
    )
    return CannotExecute(127 if error.errno == errno.ENOENT else 126, f"{named}: {error.strerror}")
