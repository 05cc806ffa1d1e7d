"""Redaction: a text without the secrets that are in it, each replaced by `***`.

The deal: whatever duly prints, logs or keeps of words that are not its own passes through here. Two kinds of secrets are
found. What is *declared*: values of variables whose names say so, and what a configuration names; found as they are, and
percent-encoded, in JSON, and in base64. And what *looks like one*: passwords and tokens in URLs, headers, assignments and
flags, keys of clouds, JSON web tokens, private keys. A word that nobody declared and that looks like none is not found: so of
payloads, bodies and messages of exceptions nothing is kept in the first place.

Pure, and linear in the length of the text, whatever is in it: each pattern ends where its next match could begin, or has
bounds. No word is imported before a text is there to look at.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    Span: TypeAlias = tuple[int, int]

HIDDEN = "***"
SHORTEST = 4  # characters: what is shorter would hide half of any text
LONGEST_MESSAGE = 500  # characters of a message that is kept at all
LONGEST = 1 << 16  # characters of one secret that is found wherever a text is cut

_SECRET_PARTS = (
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "CREDENTIAL",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
)
_SECRET_ENDS = ("KEY", "_PASS", "_PWD", "_DSN")
_PLACES = ("_FILE", "_PATH", "_DIR", "_NAME", "_ID", "_USER", "_TYPE")  # they say where a secret is, or whose
_NO_SECRETS = ("true", "false", "none", "null")

_VALUE = (  # in quotes, in quotes within quotes, or bare
    r"""(?:"((?:[^"\\]++|\\.)*+)|\\"((?:[^"\\]++|\\[^"])*+)|'((?:[^'\\]++|\\.)*+)|([^\s&'"\\-][^\s&]*+))"""
)
_NAMES = (
    *(
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "pwd",
        "secret",
        "token",
        "signature",
        "credential",
        "sharedaccesskey",
    ),
    *(
        f"{first}{between}key"
        for first in ("api", "access", "account", "private", "signing")
        for between in ("", "_", "-")
    ),
    *("session_id", "session-id", "sessionid"),
)
_ASSIGNED = (  # password=…, "token": "…"
    rf"""[\w.-]{{0,40}}+(?<!_env)(?<!_file)(?<!_path)(?:\\?["'])?\]?\s{{0,4}}(?:=>|[:=])\s{{0,4}}{_VALUE}"""
)
_AFTER_FLAG = rf"""[\w-]{{0,40}}+(?<!-env)(?<!-file)(?<!-path)["',]{{0,3}}\s{{1,4}}{_VALUE}"""  # --password …

# Where a secret may begin, in lower case, and what follows there if it is one; its last group is the secret.
_KNOWN = (
    # A URL's password: //user:password@host, //:password@host; and of HTTP a token that stands for the user.
    (("://",), r"://[^\s/:@]*+:((?:[^\s/@]*+@)++)"),
    (("http",), r"https?://([^\s/:@]{12,256}+)@"),
    (
        ("-u", "--user", "--proxy-user"),
        r"""(?<![\w-])(?:-u|--(?:proxy-)?user)[\s=]{1,4}["']?([^\s:]{1,256}+:[^\s"']++)""",
    ),
    # Headers.
    (("authorization",), r"""authorization["']?\s{0,4}[:=,]\s{0,4}["']?((?:[a-z-]{1,20}+\s{1,4})?[^\s"',]++)"""),
    (("cookie",), r"""cookie["']?\s{0,4}[:=]\s{0,4}["']?([^\r\n"']++)"""),
    (
        ("bearer", "basic", "digest"),
        r"(?<![a-z])[a-z]{5,6}\s{1,4}(?=[a-z0-9._~+/-]{0,255}(?:[0-9=]|(?-i:[A-Z])))([a-z0-9._~+/=-]{6,}+)",
    ),
    # What clouds and forges hand out.
    (("akia", "asia", "abia", "acca"), r"(?-i:(?<![A-Za-z0-9])([A-Z]{4}[A-Z0-9]{16}))"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"), r"((?:gh[pousr]|github_pat)_[a-z0-9_]{20,255}+)"),
    (("glpat-", "gldt-", "glrt-", "glcbt-"), r"([a-z]{4,5}-[a-z0-9_-]{16,255}+)"),
    (("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"), r"(xox.-[a-z0-9-]{10,255}+)"),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"([sr]k_(?:live|test)_[a-z0-9]{10,255}+)"),
    (("whsec_", "npm_", "dop_v1_", "shpat_"), r"((?:whsec|npm|dop_v1|shpat)_[a-z0-9+/=]{16,255}+)"),
    (("sk-",), r"(?<![a-z0-9])(sk-[a-z0-9_-]{20,255}+)"),
    (("aiza",), r"(?-i:(AIza[A-Za-z0-9_-]{35}))"),
    (("sg.",), r"(?-i:(?<![A-Za-z0-9])(SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}))"),
    (("hooks.slack.com/",), r"hooks\.slack\.com/[a-z]{1,20}/([a-z0-9/_-]++)"),
    # A JSON web token; its signature may be cut off.
    (("eyj",), r"(?-i:(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+(?:\.[A-Za-z0-9_-]*+)*+))"),
)
_KEY_MARK = r"-----(?:BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"

_compiled: dict[str, re.Pattern[str]] = {}


def _pattern(source: str) -> re.Pattern[str]:
    """A pattern of ours, compiled when it is first needed."""
    if source not in _compiled:
        import re

        _compiled[source] = re.compile(source, re.IGNORECASE | re.DOTALL)
    return _compiled[source]


class Redaction:
    """What is to be hidden: `declared` secrets, what matches one of `patterns`, and all that looks like a secret."""

    def __init__(self, declared: Iterable[str] = (), patterns: Iterable[re.Pattern[str]] = ()) -> None:
        whole = {text.strip() for text in declared}
        self._declared = {text for text in whole if len(text) >= SHORTEST and text.lower() not in _NO_SECRETS}
        self._needles = sorted({form for text in self._declared for form in _forms(text)})
        self._own = tuple(patterns)

    def beside(self, words: Sequence[str]) -> Redaction:
        """The same with the secrets of a command line: a command that was given one may print it."""
        found: list[str] = []
        for before, word in zip(("", *words), words, strict=False):
            text = f"{before} {word}" if before.startswith("-") and "=" not in before else word
            found += [text[begin:end] for begin, end in _that_look_so(text)]
        return Redaction([*self._declared, *found], self._own) if found else self

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._needles)} forms>"

    def of(self, text: str, *, start: int = 0) -> str:
        """The text without secrets, from a place on: what begins before the place is hidden after it too."""
        parts: list[str] = []
        for begin, end in _merged(self._spans(text)):
            if end > start:
                parts.append(text[start:begin] if begin > start else "")
                parts.append(HIDDEN)
                start = end
        parts.append(text[start:])
        return "".join(parts)

    def words(self, words: Sequence[str]) -> list[str]:
        """A command line as it may be shown: each word without secrets, and what follows a flag that names one hidden.

        A URL is left without its password, so that the line can be typed.
        """
        shown: list[str] = []
        for before, word in zip(("", *words), words, strict=False):
            flag = before if before.startswith("-") and "=" not in before else ""
            if flag and not word.startswith("-") and self.of(f"{flag} {word}") != f"{flag} {word}":
                shown.append(shown_url(word) if _is_url(word) else HIDDEN)
            else:
                shown.append(self.of(shown_url(word) if _is_url(word) else word))
        return shown

    def _spans(self, text: str) -> Iterator[Span]:
        """Where secrets stand, in any order."""
        yield from _that_look_so(text)
        for pattern in self._own:
            yield from (match.span() for match in pattern.finditer(text) if match.end() > match.start())
        for needle in self._needles:
            yield from _occurrences(text, needle)


def redacted(text: str) -> str:
    """A text without what looks like a secret."""
    return _OF_PATTERNS.of(text)


def in_few_words(said: str, most: int = LONGEST_MESSAGE) -> str:
    """What somebody else's code says, where it is kept or shown at all: on one line, bounded, without what looks like a secret,
    and without what a database adds to a message: PostgreSQL's DETAIL, HINT and CONTEXT, SQLAlchemy's statement and
    parameters, hold data.
    """
    import re

    added = r"\n\s*(?:DETAIL|HINT|CONTEXT|QUERY|STATEMENT|WHERE|LINE \d+):|\n?\[(?:SQL|parameters): "
    said = re.split(added, said[: 2 * LONGEST], maxsplit=1)[0]
    shown = "".join(sign if sign.isprintable() else " " for sign in redacted(said))
    return shown[:most].strip()


def traceback_of(error: BaseException) -> str:
    """An exception that nobody foresaw, as Python shows it, with the message of each in few words; of a database's error its
    SQLSTATE stands there instead, for its message holds data.
    """
    return "\n".join(_told(error, set()))


def state_of(error: BaseException) -> str:
    """The SQLSTATE of an error, or SQLite's name for it, whichever library wrapped it; empty where there is none."""
    of_driver = error.__cause__ if type(error).__module__.startswith("django.") else getattr(error, "orig", None)
    for each in (error, of_driver):
        for name in ("sqlstate", "pgcode", "sqlite_errorname"):
            state = getattr(each, name, None)
            if isinstance(state, str) and state.isprintable():
                return state[:40]
    return ""


def _told(error: BaseException, seen: set[int]) -> Iterator[str]:
    from traceback import format_tb

    seen.add(id(error))
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None and id(before) not in seen:
        yield from _told(before, seen)
        yield "\nwhich led to:\n"
    yield "Traceback (most recent call last):"
    yield redacted("".join(format_tb(error.__traceback__)).rstrip("\n"))
    said = state_of(error) or in_few_words(str(error))
    yield f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.") + (
        f": {said}" if said else ""
    )
    yield from map(in_few_words, getattr(error, "__notes__", ()))
    for each in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        if id(each) not in seen:
            yield "\nof the group:\n"
            yield from _told(each, seen)


# -- declared ----------------------------------------------------------------------------------------------------------


_OF_A_RUN = ("DULY_RUN_KEY", "DULY_IDEMPOTENCY_KEY")  # what duly tells a command, and is on record anyway


def secrets_of(environ: Mapping[str, str], names: Collection[str] = ()) -> list[str]:
    """The secrets of an environment: the values of variables whose names say so, of those that are named, and the passwords of
    URLs. What duly tells a command of its run is none.
    """
    found: list[str] = []
    for name, value in environ.items():
        if name in names or (names_a_secret(name) and name not in _OF_A_RUN):
            found.append(value)
        found += passwords_in(value)
    return found


def names_a_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret, as DB_PASSWORD and STRIPE_API_KEY do."""
    upper = name.upper()
    if upper.endswith(_PLACES):
        return False
    return upper.endswith(_SECRET_ENDS) or any(part in upper for part in _SECRET_PARTS)


def passwords_in(url: str) -> list[str]:
    """The passwords of a URL, as they are written and as they are meant; none of what is no URL."""
    if "://" not in url:
        return []
    from urllib.parse import unquote

    _, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    _, colon, password = place.partition("/")[0].rpartition("@")[0].partition(":")
    written = [password] if colon else []
    for part in query.partition("#")[0].split("&"):
        name, _, value = part.partition("=")
        written += [value] if names_a_secret(name) else []
    return [form for each in written if each for form in {each, unquote(each)}]


def shown_url(url: str) -> str:
    """A URL as it may be printed and typed: without its password, wherever that stands, also where it was not escaped."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return _without_words(url)
    place, question, query = rest.partition("?")
    if ":" in place and not {"/", "@"} & set(place) and "@" in query:  # a password with a question mark in it
        return f"{scheme}://{place.partition(':')[0]}@{HIDDEN}"
    credentials, at, host = place.rpartition("@")
    kept = "&".join(part for part in query.split("&") if not names_a_secret(part.partition("=")[0]))
    return f"{scheme}://{credentials.partition(':')[0]}{at}{host}{question if kept else ''}{kept}"


def _without_words(text: str) -> str:
    """Words as libpq takes them, without those that are secrets; any other text as it is."""
    if "=" not in text:
        return text
    import re

    return re.sub(r"(\w+)\s*=\s*(?:'(?:[^'\\]|\\.)*'|\S+)", _hidden_word, text)


def _hidden_word(found: re.Match[str]) -> str:
    return f"{found[1]}={HIDDEN}" if names_a_secret(found[1]) else found[0]


def _is_url(word: str) -> bool:
    scheme, slashes, _ = word.partition("://")
    return bool(slashes) and scheme.replace("+", "").isalnum()


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as programs write it down."""
    from base64 import b64encode, urlsafe_b64encode
    from json import dumps
    from urllib.parse import quote, quote_plus

    yield secret
    yield from (quote(secret, safe=""), quote(secret), quote_plus(secret))
    yield from (dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1])
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= 20)  # a key, line by line
    raw = secret.encode("utf-8", "surrogateescape")
    for before in range(3):
        # Base64 of a longer text holds these characters, wherever in it the secret stands.
        first, last = (8 * before + 5) // 6, (8 * (before + len(raw))) // 6
        for encode in (b64encode, urlsafe_b64encode):
            inner = encode(b"\0" * before + raw).decode()[first:last]
            if len(inner) >= 6:
                yield inner


# -- spans -------------------------------------------------------------------------------------------------------------


def _that_look_so(text: str) -> Iterator[Span]:
    lower = text.lower()
    if len(lower) != len(text):  # some letters become two
        lower = "".join(sign.lower() if sign.isascii() else sign for sign in text)
    if "private key" in lower:
        yield from _of_keys(text, lower)
    for anchors, source in _KNOWN:
        for anchor in anchors:
            if anchor in lower:
                yield from _after(anchor, text, lower, _pattern(source))
    for name in _NAMES:
        if name in lower:
            yield from _after(name, text, lower, _pattern(_ASSIGNED), after_flag=_pattern(_AFTER_FLAG))


def _after(
    anchor: str, text: str, lower: str, pattern: re.Pattern[str], *, after_flag: re.Pattern[str] | None = None
) -> Iterator[Span]:
    """The secrets that begin with an anchor, or, where there is a pattern for what follows a flag, after a name.

    What one match has walked is not walked again.
    """
    place = lower.find(anchor)
    while place >= 0:
        found = pattern.match(text, place + len(anchor) if after_flag is not None else place)
        if found is None and after_flag is not None:
            found = after_flag.match(text, place + len(anchor))
            if found is not None and not _is_in_flag(text, place):
                found = None
        if found is not None and found.lastindex is not None:
            begin, end = found.span(found.lastindex)
            if text[end - 1 : end] == "@":
                end -= 1
            if end > begin:
                yield begin, end
        place = lower.find(anchor, place + len(anchor) if found is None else max(found.end(), place + len(anchor)))


def _is_in_flag(text: str, place: int) -> bool:
    """Whether the word around a place begins with a hyphen."""
    before = text[max(place - 40, 0) : place]
    start = len(before)
    while start and (before[start - 1].isalnum() or before[start - 1] in "-_"):
        start -= 1
    return before[start : start + 1] == "-"


def _of_keys(text: str, lower: str) -> Iterator[Span]:
    """Blocks of private keys, up to their end or to where the text was cut; of one that was cut before, all up to its end."""
    begun: int | None = 0
    place = lower.find("-----")
    seen = False
    while place >= 0:
        mark = _pattern(_KEY_MARK).match(text, place)
        if mark is None:
            place = lower.find("-----", place + 1)
            continue
        begins = lower.startswith("-----begin", place)
        if begins and (begun is None or not seen):
            begun = place
        elif not begins and begun is not None:
            yield begun, mark.end()
            begun = None
        seen = True
        place = lower.find("-----", mark.end())
    if begun is not None and seen:
        yield begun, len(text)


def _occurrences(text: str, needle: str) -> Iterator[Span]:
    """Where a secret stands; and at the very end, where only its beginning has come."""
    place = text.find(needle)
    while place >= 0:
        begin, end = place, place + len(needle)
        while 0 <= (place := text.find(needle, place + 1)) <= end:
            end = place + len(needle)
        yield begin, end
    for length in range(min(len(needle) - 1, len(text)), SHORTEST - 1, -1):
        if text.endswith(needle[:length]):
            yield len(text) - length, len(text)
            return


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans in order, those that meet as one."""
    begin, end = -1, -1
    for first, last in sorted(spans):
        if first > end:
            if end > begin:
                yield begin, end
            begin, end = first, last
        else:
            end = max(end, last)
    if end > begin:
        yield begin, end


_OF_PATTERNS = Redaction()
