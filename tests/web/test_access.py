"""Who may look, and change: decided by headers and addresses alone, and asked of a real server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from duly.errors import Misuse
from duly.web import dashboard
from duly.web.access import HEADERS, host_name, is_same_origin
from duly.web.credentials import Credentials, password_line, read_people, read_token
from duly.web.guard import WHO, Guard
from duly.web.settings import Settings, trust
from tests.books import Book
from tests.web.conftest import Browser, served

TOKEN = "correct-horse-battery-staple"
PASSWORD = "what the night is for"


@contextmanager
def of(quiet: Book, settings: Settings) -> Iterator[Browser]:
    with served(dashboard(quiet.path, settings)) as browser:
        yield browser


def basic(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


# -- the host -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8327", "", "localhost.evil.example", "[::1", "127.0.0.1:80:80"]
)
def test_a_name_that_is_not_ours_is_refused(quiet: Book, host: str) -> None:
    """A page of the web that has its own name point here would else read whose jobs there are."""
    with of(quiet, Settings()) as browser:
        answer = browser.ask("/", Host=host)

    assert answer.status in (400, 421), answer
    assert "export" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8327", "127.0.0.1:1", "[::1]:8327"])
def test_this_machine_is_called_by_its_own_names(quiet: Book, host: str) -> None:
    with of(quiet, Settings()) as browser:
        assert browser.ask("/", Host=host).status == 200


def test_a_name_that_was_allowed_is_answered(quiet: Book) -> None:
    with of(quiet, Settings(hosts=("ops.example",))) as browser:
        assert browser.ask("/", Host="ops.example").status == 200
        assert browser.ask("/", Host="localhost").status == 421


def test_a_host_is_read_with_care() -> None:
    assert host_name("Ops.Example:443") == "ops.example"
    assert host_name("[2001:db8::1]:8327") == "2001:db8::1"
    assert host_name("ops.example@evil.example") != "ops.example"
    assert host_name("[::1]evil") == ""


# -- who ----------------------------------------------------------------------------------------------------------------


def test_without_credentials_only_this_machine_is_answered(quiet: Book) -> None:
    """The server itself may listen elsewhere, as one of another application's does."""
    application = dashboard(quiet.path, Settings())

    assert _status(application, peer="10.0.0.9") == 403
    assert _status(application, peer="127.0.0.1") == 200


def test_a_proxy_on_this_machine_does_not_speak_for_it(quiet: Book) -> None:
    with of(quiet, Settings()) as browser:
        for header in ("X_Forwarded_For", "Forwarded", "Via", "X_Real_IP"):
            assert browser.ask("/", **{header: "10.0.0.9"}).status == 403


def test_a_token_opens_and_nothing_else_does(quiet: Book) -> None:
    with of(quiet, Settings(credentials=Credentials(TOKEN, ()))) as browser:
        refused = browser.ask("/")
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Basic realm=")
        assert "export" not in refused.text
        assert browser.ask("/assets/x/duly.css").status == 401, "nothing is told without it"
        assert browser.ask("/", Authorization=f"Bearer {TOKEN}").status == 200
        assert browser.ask("/", Authorization=basic("whoever", TOKEN)).status == 200, "as a browser asks for it"
        for wrong in (f"Bearer {TOKEN}x", "Bearer ", TOKEN, f"Basic {TOKEN}", basic(TOKEN, ""), "Bearer ü"):
            assert browser.ask("/", Authorization=wrong).status == 401, wrong


def test_people_have_passwords_that_are_kept_as_what_became_of_them(quiet: Book, tmp_path: Path) -> None:
    path = tmp_path / "people"
    path.write_text(f"# who may look\n{password_line('ana', PASSWORD)}\n{password_line('bo', PASSWORD + '!')}\n")
    path.chmod(0o600)
    people = read_people(str(path))

    assert PASSWORD not in path.read_text()
    with of(quiet, Settings(credentials=Credentials(None, people))) as browser:
        assert browser.ask("/", Authorization=basic("ana", PASSWORD)).status == 200
        assert browser.ask("/", Authorization=basic("ana", PASSWORD)).status == 200, "known again"
        assert browser.ask("/", Authorization=basic("bo", PASSWORD)).status == 401
        assert browser.ask("/", Authorization=basic("ana", PASSWORD + "x")).status == 401
        assert browser.ask("/", Authorization=basic("nobody", PASSWORD)).status == 401
        assert "ana" in browser.ask("/", Authorization=basic("ana", PASSWORD)).text


def test_a_header_of_a_proxy_is_believed_from_where_it_speaks_only(quiet: Book) -> None:
    settings = Settings(trust=trust("X-Remote-User", ["10.0.0.0/8"]))
    application = dashboard(quiet.path, settings)

    assert _status(application, peer="10.1.2.3", headers={"x-remote-user": "ana"}) == 200
    assert _status(application, peer="::ffff:10.1.2.3", headers={"x-remote-user": "ana"}) == 200
    assert _status(application, peer="10.1.2.3") == 401, "the proxy says nobody"
    assert _status(application, peer="192.0.2.1", headers={"x-remote-user": "ana"}) == 403
    assert _status(application, peer="127.0.0.1", headers={"x-remote-user": "ana"}) == 403, "it is not listed"


def test_a_header_of_a_proxy_that_comes_twice_names_nobody(quiet: Book) -> None:
    """A proxy that adds its word to what it was sent would let anybody choose who they are."""
    settings = Settings(trust=trust("X-Remote-User", ["127.0.0.1"]))

    with of(quiet, settings) as browser:
        assert browser.ask("/", X_Remote_User="ana").status == 200
        answer = browser.ask("/", X_Remote_User="admin", x_remote_user="ana")

    assert answer.status == 403, answer
    assert "came more than once" in answer.text


def test_an_application_that_cannot_say_who_somebody_is_lets_nobody_in_and_its_answer_has_its_headers(
    quiet: Book,
) -> None:
    def fails(scope: object) -> str:
        raise LookupError(TOKEN)

    with of(quiet, Settings(identify=fails)) as browser:
        answers = [browser.ask(path) for path in ("/", "/now.json", "/api/v1/status")]

    for answer in answers:
        assert answer.status == 500
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
        assert "export" not in answer.text
        assert TOKEN not in answer.text


def test_a_file_that_everybody_may_read_is_no_place_for_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o644)

    with pytest.raises(Misuse, match="everybody may read that file") as refused:
        read_token(str(path))

    assert refused.value.next_step == f"chmod 600 {path}"
    path.chmod(0o600)
    assert read_token(str(path)) == TOKEN


def test_a_token_that_was_typed_for_a_path_is_not_said_again() -> None:
    with pytest.raises(Misuse) as refused:
        read_token(TOKEN)

    assert TOKEN not in str(refused.value)
    assert TOKEN not in repr(Credentials(TOKEN, ()))
    assert TOKEN not in repr(Settings(credentials=Credentials(TOKEN, ())))


# -- changes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_server_that_only_shows_refuses_whatever_would_change(quiet: Book, method: str) -> None:
    with of(quiet, Settings()) as browser:
        answer = browser.ask("/", method, body="")

    assert answer.status == 403
    assert "started without --allow-writes" in answer.text


def test_a_change_from_another_page_is_refused_whatever_the_server_allows(quiet: Book) -> None:
    with of(quiet, Settings(allow_writes=True)) as browser:
        for site in ("cross-site", "same-site"):
            answer = browser.ask("/", "POST", body="", Sec_Fetch_Site=site)
            assert answer.status == 403
            assert "came from elsewhere" in answer.text
        assert browser.ask("/", "POST", body="", Sec_Fetch_Site="same-origin").status == 405, "no page takes one yet"


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        (
            {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
            True,
        ),  # a browser cannot be made to lie there
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:8327"}, False),
        ({"origin": "http://localhost:8327"}, True),
        ({"origin": "https://localhost:8327"}, True),  # TLS ends at a proxy
        ({"origin": "http://localhost:8328"}, False),
        ({"origin": "null"}, False),
        ({"origin": "localhost:8327"}, False),
        ({}, True),  # no browser: it has nobody's password but its own
    ],
)
def test_where_a_change_comes_from(headers: dict[str, str], is_ours: bool) -> None:
    assert is_same_origin({"host": "localhost:8327", **headers}) is is_ours


# -- every answer -------------------------------------------------------------------------------------------------------


def test_every_answer_has_its_headers(browser: Browser) -> None:
    asset = browser.get("/").partition('rel="stylesheet" href="')[2].partition('"')[0]

    for path, status in (
        *(("/", 200), ("/grid", 200), ("/now.json", 200), (asset, 200)),
        *(("/nothing", 404), ("/grid?n=x", 400), ("/now.json?x=1", 400), ("/assets/0/none.js", 404)),
    ):
        answer = browser.ask(path)
        assert answer.status == status, path
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, path
    for answer in (browser.ask("/", Host="evil.example"), browser.ask("/", "POST", body="")):
        assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
    assert "unsafe" not in HEADERS["content-security-policy"]


def test_pages_are_kept_by_nobody_and_assets_for_ever(browser: Browser) -> None:
    page = browser.ask("/")
    asset = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]

    assert page.headers["cache-control"] == "no-store"
    assert "immutable" in browser.ask(asset).headers["cache-control"]


def test_an_error_in_the_application_has_them_too_and_shows_nothing_of_itself(quiet: Book) -> None:
    async def broken(request: Request) -> PlainTextResponse:
        raise RuntimeError("password=hunter22")

    guarded = Guard(Starlette(routes=[Route("/", broken)]), Settings())

    answer = _ask(guarded, raises=False)

    assert answer.status_code == 500
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
    assert "hunter22" not in answer.text


# -- in another application ---------------------------------------------------------------------------------------------


def test_it_stands_in_another_application_which_says_who_somebody_is(quiet: Book) -> None:
    def identify(scope: object) -> str | None:
        headers = dict(scope["headers"])  # type: ignore[index]
        return headers.get(b"x-session", b"").decode() or None

    inner = dashboard(quiet.path, Settings(hosts=("shop.example",), identify=identify))
    outer = Starlette(routes=[Mount("/duly", inner)])

    with served(outer) as browser:
        assert browser.ask("/duly/", Host="shop.example").status == 401
        page = browser.ask("/duly/grid", Host="shop.example", X_Session="ana").text

    assert 'href="/duly/job/export"' in page
    assert 'href="/duly/assets/' in page
    assert "ana" in page


@pytest.mark.parametrize("path", ["/ops/duly", "/ops/duly/", "/"])
def test_the_path_that_it_stands_under_is_its_first_page(quiet: Book, path: str) -> None:
    with of(quiet, Settings(root_path="/ops/duly")) as browser:
        assert "<title>Now" in browser.get(path)


@pytest.mark.parametrize("path", ["/ops/duly/grid", "/grid"])
def test_it_stands_under_a_path_whether_or_not_the_proxy_cuts_it_off(quiet: Book, path: str) -> None:
    with of(quiet, Settings(root_path="/ops/duly")) as browser:
        page = browser.get(path)

    assert 'href="/ops/duly/job/export"' in page
    assert 'action="/ops/duly/grid"' in page


def test_who_somebody_is_goes_with_the_request(quiet: Book) -> None:
    seen: list[object] = []

    async def note(request: Request) -> PlainTextResponse:
        seen.append(request.scope[WHO].name)
        return PlainTextResponse("")

    guarded = Guard(Starlette(routes=[Route("/", note)]), Settings(credentials=Credentials(TOKEN, ())))

    _ask(guarded, headers={"authorization": f"Bearer {TOKEN}"})

    assert seen == ["token"]


def _ask(
    application: object, *, peer: str = "127.0.0.1", headers: dict[str, str] | None = None, raises: bool = True
) -> httpx.Response:
    import asyncio

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(
            app=application,  # type: ignore[arg-type]
            client=(peer, 4711),
            raise_app_exceptions=raises,
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/", headers=headers)

    return asyncio.run(asked())


def _status(application: object, *, peer: str, headers: dict[str, str] | None = None) -> int:
    return _ask(application, peer=peer, headers=headers).status_code
