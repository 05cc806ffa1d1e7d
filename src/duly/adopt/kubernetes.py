"""A manifest with CronJobs: each schedule, and the text with the containers' commands wrapped.

The manifest is not written anew: what is added is put into its text at the places that a parser names, so that every comment
and blank stays, and the way back is to take the same pieces out. A job is declared by flags of `duly exec` in the manifest
itself: an image has no duly.toml, and what a Pod does is best read in one place.
"""

from __future__ import annotations

import json
from shlex import join

from duly.adopt.found import Found, Left, Note, Place, Reading, Undone, When
from duly.adopt.naming import slug
from duly.adopt.shell import calls_duly
from duly.adopt.vixie import ALIASES, Fields, equal_line
from duly.errors import Misuse
from duly.records import record
from duly.times import Zone
from duly.work.command import literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Protocol

    class Mark(Protocol):
        """A place in a text, as PyYAML has it; both count from 0."""

        line: int
        index: int

    class Node(Protocol):
        """A node of PyYAML: `scalar` with a text, `sequence` with nodes, `mapping` with pairs of them."""

        id: str
        value: Any
        start_mark: Mark
        end_mark: Mark


KEY_OF_URL = "url"  # in the secret
FINAL = "[79, 80, 81]"  # exit codes after which another Pod comes to the same
_WAS = " # was OnFailure (duly import)"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@record
class Context:
    """What is known beside the manifest. `zone` is that of kube-controller-manager, empty where nobody said it."""

    zone: str = ""
    container: str = ""
    duly: str = "duly"
    secret: str = "duly"  # noqa: S105  its name; it holds the ledger's URL
    prefix: str = ""


@record
class CronJob:
    """A CronJob that can be wrapped: the parts of its manifest that are added to."""

    place: Place
    when: When
    container: Node
    job_spec: Node
    pod_spec: Node


@record
class Manifest:
    """What was read of a manifest. `jobs` are those of the reading, in their order."""

    text: str
    jobs: tuple[CronJob, ...]
    reading: Reading
    context: Context

    def rewritten(self, names: Sequence[str]) -> str:
        """The manifest with its CronJobs wrapped under these names, one for each."""
        text = _Text(self.text)
        for job, name in zip(self.jobs, names, strict=True):
            _wrap(text, job, name, self.context)
        return text.changed()


# -- reading -------------------------------------------------------------------------------------------------------------


def read_manifest(text: str, file: str, context: Context) -> Manifest:
    """What is in a manifest. Raises `Misuse` for one that is not YAML, or whose zone nobody knows."""
    found: list[Found] = []
    notes: list[Note] = []
    jobs: list[CronJob] = []
    already = 0
    nodes = list(_cron_jobs(text, file))
    counts: dict[int, int] = {}
    for node in nodes:
        _count_parts(node, counts)
    for node in nodes:
        try:
            _refuse_shared(node, counts)
            spec = _map(node, "spec")
            if _is_ours_already(spec, context):
                already += 1
                continue
            job, hint, original, said = _cron_job(node, spec, file, context)
        except Left as e:
            notes.append(e.note(Place(file, node.start_mark.line + 1)))
            continue
        found.append(Found(job.place, "", original, hint, job.when, (len(jobs),)))
        jobs.append(job)
        notes += said
    return Manifest(text, tuple(jobs), Reading(tuple(found), already, tuple(notes)), context)


def _left(code: str, node: Node, says: str) -> Left:
    return Left(code, says, node.start_mark.line + 1)


def _cron_jobs(text: str, file: str) -> Iterator[Node]:
    """The mappings of kind CronJob, in lists too."""
    yaml = _yaml()
    try:
        documents = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark is not None else file
        raise Misuse(
            f"{where}: it is not YAML: {getattr(e, 'problem', e)}; of a chart of Helm, import what `helm template` prints",
            next_step="helm template CHART > manifest.yaml && duly import kubernetes manifest.yaml",
        ) from e
    for document in documents:
        yield from _of_kind(document)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as e:
        raise Misuse(
            "reading manifests needs PyYAML, which is not installed", next_step="pip install 'duly[kubernetes]'"
        ) from e
    return yaml


def _of_kind(node: Node | None) -> Iterator[Node]:
    if node is None or node.id != "mapping":
        return
    kind = _text(_get(node, "kind"))
    if kind == "CronJob":
        yield node
    elif kind.endswith("List"):
        items = _get(node, "items")
        for item in items.value if items is not None and items.id == "sequence" else []:
            yield from _of_kind(item)


def _get(node: Node, key: str) -> Node | None:
    pairs: list[tuple[Node, Node]] = node.value if node.id == "mapping" else []
    return next((value for name, value in pairs if name.value == key), None)


def _key(node: Node, key: str) -> Node | None:
    return next((name for name, _ in node.value if name.value == key), None)


def _text(node: Node | None) -> str:
    return str(node.value) if node is not None and node.id == "scalar" else ""


def _map(node: Node, *keys: str) -> Node:
    """The mapping below these keys. Raises `Left`."""
    for key in keys:
        below = _get(node, key)
        if below is None or below.id != "mapping":
            raise _left("no_such_key", node, f"has no {key}: this is no CronJob that Kubernetes takes")
        node = below
    return node


def _count_parts(node: Node, counts: dict[int, int]) -> None:
    """How often each mapping and sequence stands somewhere; what is in one is counted once, or a file of aliases never ends."""
    if node.id not in ("mapping", "sequence"):
        return
    counts[id(node)] = counts.get(id(node), 0) + 1
    if counts[id(node)] == 1:
        for below in node.value:
            for one in below if isinstance(below, tuple) else (below,):
                _count_parts(one, counts)


def _refuse_shared(node: Node, counts: dict[int, int]) -> None:
    """Raise `Left` where a part of it stands elsewhere, by an alias: to change it here would change it there."""
    own: dict[int, int] = {}
    _count_parts(node, own)
    if any(counts[part] > 1 for part in own):
        raise _left("alias", node, "shares a part with another by a YAML alias; write it out, and import again")


def _is_ours_already(spec: Node, context: Context) -> bool:
    containers = _get(_map(spec, "jobTemplate", "spec", "template", "spec"), "containers")
    return any(
        calls_duly(join(map(_text, _items(_get(one, "command")) + _items(_get(one, "args")))))
        for one in _items(containers)
    )


def _items(node: Node | None) -> list[Node]:
    return list(node.value) if node is not None and node.id == "sequence" else []


def _cron_job(node: Node, spec: Node, file: str, context: Context) -> tuple[CronJob, str, str, list[Note]]:
    """A CronJob, a name for its job, what it is known by, and what is to be said of it. Raises `Left`."""
    version = _get(node, "apiVersion")
    if _text(version) != "batch/v1":
        raise _left(
            "version",
            version or node,
            f"apiVersion {_text(version) or 'is missing'}: only batch/v1 is served since Kubernetes 1.25",
        )
    name = _get(_map(node, "metadata"), "name")
    if not _text(name):
        raise _left("no_name", node, "has no metadata.name: with generateName it would be another job each time")
    schedule = _get(spec, "schedule")
    if schedule is None:
        raise _left("no_schedule", spec, "has no spec.schedule")
    when = _when(spec, schedule, file, context)
    replace = _get(spec, "concurrencyPolicy")
    if _text(replace) == "Replace":
        raise _left(
            "replace",
            replace or spec,
            "concurrencyPolicy: Replace kills a running Pod when the next is due: under duly each "
            "such run would end as unknown; write Forbid, or let it be",
        )
    job_spec = _map(spec, "jobTemplate", "spec")
    _refuse_many_pods(job_spec)
    pod_spec = _map(job_spec, "template", "spec")
    container = _container(pod_spec, context)
    _refuse_command(container)
    if _get(job_spec, "podFailurePolicy") is not None:
        raise _left(
            "pod_failure_policy",
            _get(job_spec, "podFailurePolicy") or job_spec,
            f"has a podFailurePolicy; add a rule FailJob for the exit codes {FINAL} and wrap the command by hand, as another "
            "CronJob's proposal shows",
        )
    place = Place(file, schedule.start_mark.line + 1)
    words = " ".join(map(_text, _items(_get(container, "command")) + _items(_get(container, "args"))))
    job = CronJob(place, when, container, job_spec, pod_spec)
    return job, slug(_text(name)), f"{_text(schedule)}  {words}", list(_notes(spec, job, file, context))


def _when(spec: Node, schedule: Node, file: str, context: Context) -> When:
    text = _text(schedule)
    if text.startswith(("TZ=", "CRON_TZ=")):
        raise _left(
            "zone_in_schedule",
            schedule,
            f"schedule {text.split()[0]}: Kubernetes does not support a zone in there; write timeZone",
        )
    if text.startswith("@every"):
        raise _left(
            "interval",
            schedule,
            f"{text} counts from when the CronJob was last started, which is no schedule; write a line of cron",
        )
    named = _get(spec, "timeZone")
    zone = _text(named) or context.zone
    if not zone:
        raise Misuse(
            f"{file}:{schedule.start_mark.line + 1}: spec.timeZone is missing, and then the schedule is in the zone of "
            "kube-controller-manager, which is not known here (UTC, on most clusters); say it",
            next_step=f"duly import kubernetes {file} --zone UTC",
        )
    zone = "UTC" if zone in ("Etc/UTC", "UCT", "Zulu") else zone
    try:
        Zone(zone)
    except Misuse as e:
        raise _left("zone", named or schedule, f"timeZone {zone} is no zone that is known here: {e}") from e
    try:
        readings = _readings(text.split())
        line = equal_line(readings[0], text)
        if len(readings) > 1 and equal_line(readings[1], text) != line:
            raise Left(
                "ambiguous", f"{text}: whether both day fields have to fit has changed between releases; leave one as *"
            )
    except Left as e:
        raise _left(e.code, schedule, e.says) from e
    # Its library steps through the hours that are: what the clocks skip does not come, what they repeat comes twice.
    return When((line.text,), zone) if zone == "UTC" else When((line.text,), zone, "skip", "both")


def _readings(words: Sequence[str]) -> list[Fields]:
    """What Kubernetes makes of a schedule; two where `*/n` in a day field has counted as `*`, and does not any more."""
    if len(words) == 1 and words[0] in ALIASES:
        words = ALIASES[words[0]].split()
    if len(words) != 5:
        raise Left("not_accepted", f"{' '.join(words)} is not five fields: Kubernetes refuses it")
    minute, _ = _field("minute", words[0], 0, 59)
    hour, _ = _field("hour", words[1], 0, 23)
    dom, dom_star = _field("day-of-month", words[2], 1, 31)
    month, _ = _field("month", words[3], 1, 12, _MONTHS)
    dow, dow_star = _field("day-of-week", words[4], 0, 6, _DAYS)

    def read(dom_is_star: bool, dow_is_star: bool) -> Fields:
        return Fields(minute, hour, dom, month, dow, (False, False, dom_is_star, False, dow_is_star))

    now = read(dom_star == "*", dow_star == "*")
    before = read(bool(dom_star), bool(dow_star))
    return [now] if now == before else [now, before]


def _field(name: str, word: str, low: int, high: int, names: tuple[str, ...] = ()) -> tuple[tuple[int, ...], str]:
    """The values, and `*` where all of them are meant by it, `/` where it is stepped through."""
    found: set[int] = set()
    star = ""
    for token in word.split(","):
        span, slash, step = token.partition("/")
        first, dash, last = span.partition("-")
        if slash and not (step.isascii() and step.isdecimal() and int(step)):
            raise Left("not_accepted", f"Kubernetes refuses {name} {token}: {step!r} is no step")
        if span in ("*", "?"):
            begin, end = low, high
            star = "*" if not slash or int(step) == 1 else star or "/"
        else:
            begin = _number(name, first, low, high, names, token)
            end = _number(name, last, low, high, names, token) if dash else high if slash else begin
        if begin > end:
            raise Left("backwards", f"Kubernetes refuses {name} {token}: it runs backwards")
        found.update(range(begin, end + 1, int(step) if slash else 1))
    return tuple(sorted(found)), star


def _number(name: str, text: str, low: int, high: int, names: tuple[str, ...], token: str) -> int:
    if text.lower() in names:
        return names.index(text.lower()) + low
    if not (text.isascii() and text.isdecimal()) or not low <= int(text) <= high:
        raise Left("not_accepted", f"Kubernetes refuses {name} {token}")
    return int(text)


def _refuse_many_pods(job_spec: Node) -> None:
    for key in ("completions", "parallelism"):
        node = _get(job_spec, key)
        if node is not None and _text(node) not in ("0", "1"):
            raise _left(
                "many_pods", node, f"{key}: {_text(node)} has several Pods do one run; duly gives a run to one attempt"
            )


def _container(pod_spec: Node, context: Context) -> Node:
    containers = _items(_get(pod_spec, "containers"))
    names = [_text(_get(one, "name")) for one in containers]
    if not containers:
        raise _left("no_container", pod_spec, "has no containers")
    if context.container:
        if context.container not in names:
            raise _left(
                "no_container", containers[0], f"has no container {context.container!r}; it has {', '.join(names)}"
            )
        return _map(containers[names.index(context.container)])
    if len(containers) > 1:
        raise _left(
            "several_containers",
            containers[0],
            f"has the containers {', '.join(names)}; say which one does the work: --container {names[0]}",
        )
    return _map(containers[0])


def _refuse_command(container: Node) -> None:
    """Raise `Left` where the command is not there, or cannot be put behind duly."""
    command = _get(container, "command")
    if not _items(command):
        image = _text(_get(container, "image"))
        raise _left(
            "no_command",
            container,
            f"has no command: what {image or 'the image'} runs is in the image; write it here "
            "(docker inspect --format '{{.Config.Entrypoint}}' IMAGE), and import again",
        )
    for word in (*_items(command), *_items(_get(container, "args"))):
        if literal(_text(word)) != _text(word):
            raise _left(
                "placeholder",
                word,
                "has what duly would take for a placeholder; write {{ for its {, and wrap it by hand",
            )


def _notes(spec: Node, job: CronJob, file: str, context: Context) -> Iterator[Note]:
    def note(code: str, node: Node | None, says: str) -> Note:
        return Note(code, Place(file, (node or spec).start_mark.line + 1), says)

    image = _get(job.container, "image")
    yield note("image", image, f"{_text(image) or 'the image'} must have duly in it: pip install 'duly[postgres]'")
    if _get(job.container, "envFrom") is not None:
        yield note(
            "ledger",
            _get(job.container, "envFrom"),
            "the ledger's URL is expected in DULY_LEDGER, from envFrom: it must be PostgreSQL",
        )
    else:
        yield note(
            "ledger",
            job.container,
            f"the ledger's URL comes from the secret {context.secret!r}, key {KEY_OF_URL!r}: PostgreSQL, by duly db create",
        )
    policy = _get(spec, "concurrencyPolicy")
    if _text(policy) in ("", "Allow"):
        yield note(
            "overlap",
            policy,
            "concurrencyPolicy Allow: duly works one run of a job at a time; a Pod that comes meanwhile exits with 75",
        )
    deadline = _get(spec, "startingDeadlineSeconds")
    if deadline is not None:
        yield note(
            "deadline",
            deadline,
            f"startingDeadlineSeconds {_text(deadline)} stays: a Pod that is not started is no poke; the next works the newest",
        )
    if _text(_get(spec, "suspend")) == "true":
        yield note(
            "suspended",
            _get(spec, "suspend"),
            "suspend: true stays: nothing pokes; `duly jobs pause` says so in the ledger too, once it knows the job",
        )
    backoff = _get(job.job_spec, "backoffLimit")
    if _text(backoff) != "0":
        limit = _text(backoff) or "6, if not given"
        yield note(
            "backoff",
            backoff or job.job_spec,
            f"backoffLimit {limit}: after a failure the next Pod is told that the run waits for a person (79), which ends the "
            "Job; --retries says that a failure proves that nothing happened",
        )
    if _text(_get(job.pod_spec, "restartPolicy")) == "OnFailure":
        yield note(
            "restart_policy",
            _get(job.pod_spec, "restartPolicy"),
            "restartPolicy becomes Never, which podFailurePolicy wants: a retry is a new Pod",
        )


# -- editing -------------------------------------------------------------------------------------------------------------


class _Text:
    """A text with what is to be put into it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._pieces: list[tuple[int, int, str]] = []

    def insert(self, place: int, piece: str) -> None:
        self._pieces.append((place, place, piece))

    def replace(self, begin: int, end: int, piece: str) -> None:
        self._pieces.append((begin, end, piece))

    def insert_lines(self, place: int, lines: Sequence[str]) -> None:
        """Lines before the one on which a place is, with the indent of that place."""
        begin = self.text.rfind("\n", 0, place) + 1
        indent = self.text[begin:place]
        assert not indent.strip(), "the place is the first thing in its line"
        self.insert(begin, "".join(f"{indent}{line}{self.newline}" for line in lines))

    def is_first_in_line(self, place: int) -> bool:
        return not self.text[self.text.rfind("\n", 0, place) + 1 : place].strip(" ")

    def changed(self) -> str:
        text = self.text
        for begin, end, piece in sorted(self._pieces, key=lambda piece: piece[0], reverse=True):
            text = text[:begin] + piece + text[end:]
        return text


def words_of(job: str, when: When, duly: str) -> list[str]:
    """What stands before a container's command."""
    flags = [word for line in when.cron for word in ("--cron", line)]
    flags += ["--zone", when.zone]
    flags += [word for flag, value in (("--gap", when.gap), ("--fold", when.fold)) if value for word in (flag, value)]
    called = [python, "-m", "duly"] if (python := duly.removesuffix(" -m duly")) != duly else [duly]
    return [*called, "exec", job, *flags, "--catch-up", "latest", "--"]


def _wrap(text: _Text, job: CronJob, name: str, context: Context) -> None:
    command = _get(job.container, "command")
    assert command is not None
    _insert_items(text, command, [_json(word) for word in words_of(name, job.when, context.duly)])
    _insert_ledger(text, job.container, context.secret)
    container = _text(_get(job.container, "name"))
    _insert_key(text, job.job_spec, "template", "podFailurePolicy", _policy_lines(container), _policy_flow(container))
    restart = _get(job.pod_spec, "restartPolicy")
    if restart is not None and _text(restart) == "OnFailure":
        end = restart.end_mark.index
        quoted = text.text[restart.start_mark.index : end]
        is_last_in_line = not text.text[end:].partition("\n")[0].strip() or text.text[end:].lstrip(" ").startswith("#")
        text.replace(
            restart.start_mark.index, end, quoted.replace("OnFailure", "Never") + (_WAS if is_last_in_line else "")
        )


def _json(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def _is_flow(text: _Text, node: Node) -> bool:
    return text.text[node.start_mark.index : node.start_mark.index + 1] in ("[", "{")


def _insert_items(text: _Text, node: Node, items: Sequence[str]) -> None:
    """Put items before the first of a sequence."""
    first = node.value[0]
    if _is_flow(text, node):
        text.insert(first.start_mark.index, "".join(f"{item}, " for item in items))
    else:
        text.insert_lines(text.text.rfind("-", 0, first.start_mark.index), [f"- {item}" for item in items])


def _insert_key(text: _Text, node: Node, before: str, key: str, lines: Sequence[str], flow: str) -> None:
    """A key before another of a mapping; before one that begins its line, where that does not."""
    places = [name.start_mark.index for name, _ in node.value]
    named = _key(node, before)
    if _is_flow(text, node):
        place = named.start_mark.index if named is not None else places[0]
        text.insert(place, f'"{key}": {flow}, ')
        return
    wanted = [] if named is None else [named.start_mark.index]
    place = next(one for one in (*wanted, *places) if text.is_first_in_line(one))
    text.insert_lines(place, lines)


def _policy_lines(container: str) -> list[str]:
    return [
        "podFailurePolicy:",
        "  rules:",
        "  - action: FailJob",
        "    onExitCodes:",
        f"      containerName: {_json(container)}",
        "      operator: In",
        f"      values: {FINAL}",
    ]


def _policy_flow(container: str) -> str:
    codes = {"containerName": container, "operator": "In", "values": json.loads(FINAL)}
    return json.dumps({"rules": [{"action": "FailJob", "onExitCodes": codes}]})


def _insert_ledger(text: _Text, container: Node, secret: str) -> None:
    env = _get(container, "env")
    if _get(container, "envFrom") is not None or any(_text(_get(one, "name")) == "DULY_LEDGER" for one in _items(env)):
        return
    if _items(env):
        assert env is not None
        if _is_flow(text, env):
            text.insert(env.value[0].start_mark.index, f"{_env_flow(secret)}, ")
        else:
            text.insert_lines(text.text.rfind("-", 0, env.value[0].start_mark.index), _env_lines(secret))
    elif env is None:
        _insert_key(text, container, "command", "env", ["env:", *_env_lines(secret)], f"[{_env_flow(secret)}]")
    else:
        text.replace(env.start_mark.index, env.end_mark.index, f"[{_env_flow(secret)}]")


def _env_lines(secret: str) -> list[str]:
    return [
        "- name: DULY_LEDGER",
        "  valueFrom:",
        "    secretKeyRef:",
        f"      name: {_json(secret)}",
        f"      key: {_json(KEY_OF_URL)}",
    ]


def _env_flow(secret: str) -> str:
    return json.dumps({"name": "DULY_LEDGER", "valueFrom": {"secretKeyRef": {"name": secret, "key": KEY_OF_URL}}})


# -- and back ------------------------------------------------------------------------------------------------------------


def undo_manifest(text: str, file: str) -> Undone:
    """The manifest without what an import has put into it.

    What is taken out is what would be put in: a CronJob of which a part has been changed since is left whole.
    """
    names: set[str] = set()
    kept: set[str] = set()
    notes: list[Note] = []
    for which in range(len(list(_cron_jobs(text, file)))):
        node = list(_cron_jobs(text, file))[which]
        found = _taken_out(text, node)
        if found is None:
            continue
        job, without, secret = found
        if without is None or not _comes_again(without, text, file, which, job, secret):
            kept.add(job)
            place = Place(file, node.start_mark.line + 1)
            notes.append(Note("edited", place, f"{job} was changed since it was imported, and stays", carried=False))
        else:
            names.add(job)
            text = without
    return Undone(text, frozenset(names), frozenset(kept), tuple(notes))


def _taken_out(text: str, node: Node) -> tuple[str, str | None, str] | None:
    """The job that a CronJob pokes, the text without what an import puts in, and the secret. None where it pokes none."""
    try:
        job_spec = _map(node, "spec", "jobTemplate", "spec")
        pod_spec = _map(job_spec, "template", "spec")
        containers = [_map(one) for one in _items(_get(pod_spec, "containers"))]
    except Left:
        return None
    container = next((one for one in containers if _job_poked(one)), None)
    if container is None:
        return None
    job = _job_poked(container)
    edited = _Text(text)
    command = _get(container, "command")
    assert command is not None
    words = [_text(word) for word in command.value]
    if "--catch-up" not in words or "--" not in words[:-1]:
        return job, None, ""
    first, following = command.value[0], command.value[words.index("--") + 1]
    if _is_flow(edited, command):
        edited.replace(first.start_mark.index, following.start_mark.index, "")
    else:
        starts = [_line_start(text, text.rfind("-", 0, one.start_mark.index)) for one in (first, following)]
        edited.replace(starts[0], starts[1], "")
    secret = _take_ledger_out(edited, container)
    _take_key_out(edited, job_spec, "podFailurePolicy")
    restart = _get(pod_spec, "restartPolicy")
    if restart is not None and text[restart.end_mark.index :].startswith(_WAS):
        quoted = text[restart.start_mark.index : restart.end_mark.index]
        edited.replace(
            restart.start_mark.index, restart.end_mark.index + len(_WAS), quoted.replace("Never", "OnFailure")
        )
    return job, edited.changed(), secret


def _job_poked(container: Node) -> str:
    words = [_text(word) for word in _items(_get(container, "command"))]
    return words[words.index("exec") + 1] if "exec" in words[:-1] and calls_duly(join(words)) else ""


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, place) + 1


def _take_ledger_out(edited: _Text, container: Node) -> str:
    """Take the variable out that names the ledger, where it is ours; answers the secret's name."""
    env = _get(container, "env")
    ours = next((one for one in _items(env) if _text(_get(one, "name")) == "DULY_LEDGER"), None)
    if env is None or ours is None:
        return ""
    reference = _get(_get(ours, "valueFrom") or ours, "secretKeyRef")
    secret = _text(_get(reference, "name")) if reference is not None else ""
    items = env.value
    if len(items) == 1:
        _take_key_out(edited, container, "env")
    elif _is_flow(edited, env):
        edited.replace(items[0].start_mark.index, items[1].start_mark.index, "")
    else:
        starts = [_line_start(edited.text, edited.text.rfind("-", 0, one.start_mark.index)) for one in items[:2]]
        edited.replace(starts[0], starts[1], "")
    return secret


def _take_key_out(edited: _Text, node: Node, key: str) -> None:
    """Take a key out with its value, up to the key after it."""
    keys = [name for name, _ in node.value]
    place = next((i for i, name in enumerate(keys) if name.value == key), None)
    if place is None or place + 1 == len(keys):
        return
    begin, end = keys[place].start_mark.index, keys[place + 1].start_mark.index
    if _is_flow(edited, node):
        edited.replace(begin, end, "")
    else:
        edited.replace(_line_start(edited.text, begin), _line_start(edited.text, end), "")


def _comes_again(without: str, text: str, file: str, which: int, job: str, secret: str) -> bool:
    """Whether an import of this CronJob from the text without it would put the same in again."""
    node = list(_cron_jobs(text, file))[which]
    containers = _items(_get(_map(node, "spec", "jobTemplate", "spec", "template", "spec"), "containers"))
    container = next(_map(one) for one in containers if _job_poked(_map(one)) == job)
    words = [_text(word) for word in _items(_get(container, "command"))]
    zone = words[words.index("--zone") + 1] if "--zone" in words[:-1] else "UTC"
    context = Context(zone, _text(_get(container, "name")), " ".join(words[: words.index("exec")]), secret or "duly")
    bare = list(_cron_jobs(without, file))[which]
    try:
        found, *_ = _cron_job(bare, _map(bare, "spec"), file, context)
    except Left:
        return False
    edited = _Text(without)
    _wrap(edited, found, job, context)
    return edited.changed() == text
