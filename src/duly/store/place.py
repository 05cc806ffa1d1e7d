"""Where a database of PostgreSQL is, as a connection to it tells: the URL by which duly makes connections of its own.

A connection is asked, not the settings that it was made with: what a hook or an argument added to them is part of the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from duly.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping


def url_of(driver: Any, asked: Mapping[str, Any]) -> str:
    """The URL by which a connection of psycopg, psycopg2 or asyncpg was made, password included; `asked` is by which words.

    Where several hosts were asked for, it names them all: the connection itself knows the one that answered. Raises `Misuse`
    for a connection that does not tell.
    """
    parameters, password = _told(driver)
    hosts = _listed(asked.get("host"))
    if "," in hosts:
        parameters |= {name: _listed(asked[name]) for name in ("host", "port") if asked.get(name)}
    if "host" in parameters:
        parameters.pop("hostaddr", None)  # psycopg resolves the name; the next connection shall do so anew
    parameters.pop("password", None)  # psycopg2 shows a mask
    user, database = parameters.pop("user", ""), parameters.pop("dbname", "")
    secret = f":{quote(password, safe='')}" if password else ""
    return f"postgresql://{quote(user, safe='')}{secret}@/{quote(database, safe='')}?{urlencode(parameters, quote_via=quote)}"


def _listed(several: Any) -> str:
    """What libpq takes with commas between, and asyncpg as a list."""
    return ",".join(map(str, several)) if isinstance(several, (list, tuple)) else str(several or "")


def _told(driver: Any) -> tuple[dict[str, str], str]:
    """Parameters in libpq's words, and the password."""
    info: Any = getattr(driver, "info", None)
    if hasattr(info, "get_parameters"):  # psycopg
        return dict(info.get_parameters()), info.password or ""
    if hasattr(info, "dsn_parameters"):  # psycopg2
        return dict(info.dsn_parameters), info.password or ""
    made_with: Any = getattr(driver, "_params", None)
    if hasattr(made_with, "server_settings") and hasattr(driver, "_addr"):  # asyncpg
        return _of_asyncpg(made_with, driver._addr), made_with.password or ""
    raise Misuse(
        f"a connection of {type(driver).__module__.partition('.')[0]} does not say where it is to; "
        "use psycopg, psycopg2 or asyncpg under it, or duly.postgres(url)"
    )


def _of_asyncpg(made_with: Any, address: Any) -> dict[str, str]:
    """What asyncpg keeps of a connection's making, which it shows nobody: the names are its own, and private."""
    if callable(made_with.password):
        raise Misuse(
            "the engine's password is made by a function, which duly's own connections cannot ask; give a text"
        )
    if isinstance(address, str):  # the file of a socket
        folder, _, port = address.rpartition("/.s.PGSQL.")
        host = folder or "/"
    else:
        host, port = address[0], str(address[1])
    settings = dict(made_with.server_settings or {})
    parameters = {"user": made_with.user, "dbname": made_with.database, "host": host, "port": port}
    parameters |= {"sslmode": _sslmode(made_with), "target_session_attrs": made_with.target_session_attrs.value}
    if "application_name" in settings:
        parameters["application_name"] = settings.pop("application_name")
    if settings:
        parameters["options"] = " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())
    return parameters


def _sslmode(made_with: Any) -> str:
    """libpq's word for at least what the connection's context checks: where libpq has no certificates to do so, it refuses."""
    context = made_with.ssl
    if context and context.verify_mode.name != "CERT_NONE":
        return "verify-full" if context.check_hostname else "verify-ca"
    return str(made_with.sslmode.name)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace(" ", "\\ ")
