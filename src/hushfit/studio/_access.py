"""Who may use the studio: hosts, origins, sessions, and the headers of every answer.

The address that the program prints has a token, which is exchanged for a cookie at once. The cookie
is not sent by other sites (SameSite=Strict) and cannot be read by scripts. Requests that change
something must come from a page of ours (Origin) and have the session's form token.
"""

import asyncio
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hushfit._pages import rendered
from hushfit.errors import InvalidArgument, LedgerError
from hushfit.studio._settings import Settings

COOKIE: Final = "hushfit_studio"
_SAFE: Final = ("GET", "HEAD")
_FORM_BYTES: Final = 16 << 20
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:/?#@\\\s\[\]]+)(?::[0-9]{1,5})?")
_SECONDS_FOR_A_PIECE: Final = 60.0
_MOST_SESSIONS: Final = 1000
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # without any referrer browsers hide the origin of forms
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True)
class Session:
    """One person in one browser.

    Parameters
    ----------
    person : str, optional
        Person of a token of the ledger; None for who started the studio.
    token : str, optional
        That token.
    may_spend : bool
        Whether they may change anything.
    csrf : str
        Token of forms.
    """

    person: str | None
    token: str | None = field(repr=False)
    may_spend: bool
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)


class Access:
    """Sessions of a studio."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._sessions: dict[str, Session] = {}

    def enter(self, shown: str) -> str | None:
        """Key of a new session for who shows the right token; None for others."""
        session = self._admitted(shown)
        if session is None:
            return None
        if len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        key = secrets.token_urlsafe(32)
        self._sessions[key] = session
        return key

    def leave(self, cookie: str | None) -> None:
        """End the session of a cookie."""
        self._sessions.pop(cookie or "", None)

    def session(self, cookie: str | None) -> Session | None:
        """The session of a cookie; none from the day on which its token has expired."""
        found = self._sessions.get(cookie or "")
        if found is None or found.token is None or _person(found.token) is not None:
            return found
        self.leave(cookie)
        return None

    def _admitted(self, shown: str) -> Session | None:
        settings = self._settings
        if not settings.accounts:
            right = hmac.compare_digest(shown.encode(), settings.secret.encode())
            return Session(None, None, not settings.read_only) if right else None
        person = _person(shown)
        if person is None:
            return None
        looks = settings.read_only or person in settings.officers
        return Session(person, shown, not looks)


class Guard:
    """Middleware in front of every page."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self._app, self._settings, self._access = app, settings, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no web sockets here
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal, body = self._refusal(Request(scope)), _Body(receive, self._most(scope["path"]))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if refusal is not None or body.left < 0:
                    headers["connection"] = "close"  # and do not read the rest of the request
            await send(message)

        await (refusal or self._app)(scope, body, guarded)

    def _refusal(self, request: Request) -> Response | None:
        origin = f"{self._settings.scheme}://{request.headers.get('host', '')}"
        if not self._is_own_host(request.headers):
            return _told("This host name is not that of the studio.", 421)
        if request.method not in (*_SAFE, "POST"):
            return _told("Only GET and POST.", 405)
        if request.method == "POST" and request.headers.get("origin") != origin:
            return _told("This request comes from another site. Nothing was done.", 403)
        # The path as the routes see it. That of `request.url` is made of the host header as well,
        # in older versions of Starlette without checking it.
        root, path = self._settings.root, request.scope["path"]
        if _size(request.headers) > self._most(path):
            return _too_large(self._most(path))
        if path.startswith(f"{root}/static/"):
            return None
        shown = request.query_params.get("token")
        if path == f"{root}/" and shown is not None and not self._settings.accounts:
            return self._exchanged(shown)
        if path == f"{root}/login" and self._settings.accounts:
            return None
        session = self._access.session(request.cookies.get(COOKIE))
        if session is None:
            if self._settings.accounts and path.startswith(f"{root}/"):
                return RedirectResponse(f"{root}/login", 303)
            return _told(
                "Not logged in. Open the address that `hushfit studio` printed when it started.",
                403,
            )
        if request.method == "POST" and not session.may_spend and path != f"{root}/logout":
            return _told("You may look, not change anything. Ask who started the studio.", 403)
        request.scope["session"] = session
        return None

    def _exchanged(self, shown: str) -> Response:
        key = self._access.enter(shown)
        if key is None:
            return _told("Wrong token. Open the address that `hushfit studio` printed.", 403)
        return entered(self._settings, key)

    def _is_own_host(self, headers: Headers) -> bool:
        """Whether the browser asked for us, and not for a name that somebody else points here."""
        settings = self._settings
        named = _HOST.fullmatch(headers.get("host", ""))
        names = {settings.host, f"[{settings.host}]"}
        if settings.is_loopback:
            names |= {"127.0.0.1", "localhost"}
        return named is not None and named[1] in names

    def _most(self, path: str) -> int:
        is_upload = path == f"{self._settings.root}/table/upload"
        return self._settings.max_upload if is_upload else _FORM_BYTES


class _Body:
    """Body of a request, up to the most that it may have, whatever it says of its length."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._most = receive, most
        self.left = most + (1 << 16)  # and the frame of a form
        self._ended = False

    async def __call__(self) -> Message:
        message = await (self._receive() if self._ended else self._received_in_time())
        self._ended = not message.get("more_body", False)
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise InvalidArgument(
                f"the upload is larger than {self._most:,} bytes. Put the file into the studio's "
                "folder, or start it with a larger --max-upload."
            )
        return message

    async def _received_in_time(self) -> Message:
        try:
            return await asyncio.wait_for(self._receive(), _SECONDS_FOR_A_PIECE)
        except TimeoutError:
            raise InvalidArgument(
                f"nothing came for {_SECONDS_FOR_A_PIECE:g} seconds. Send it again."
            ) from None


def _person(token: str) -> str | None:
    """Person of a token of the ledger that is valid today."""
    from hushfit.privacy.ledger import person_of_token

    try:
        return person_of_token(token)
    except (LedgerError, ValueError):
        return None


def entered(settings: Settings, key: str) -> Response:
    """Answer to a login: the cookie, and on to the first page.

    By a page of ours rather than a redirect: a strict cookie is not sent along a redirect of a
    request that began elsewhere.
    """
    answer = HTMLResponse(rendered(__package__, "entered.html", first=f"{settings.root}/table"))
    answer.set_cookie(
        COOKIE,
        key,
        path=settings.root,
        httponly=True,
        samesite="strict",
        secure=settings.scheme == "https",
    )
    return answer


def session_of(request: Request) -> Session:
    """Session that the guard found."""
    session: Session = request.scope["session"]
    return session


async def form_of(request: Request) -> Mapping[str, Any]:
    """Fields of a form of ours; refused without the form token of the session."""
    form: FormData = await request.form(max_fields=200_000, max_files=1)
    shown = str(form.get("csrf", ""))
    if not hmac.compare_digest(shown.encode(), session_of(request).csrf.encode()):
        raise InvalidArgument(
            "this form is from an older session. Nothing was done. Load the page again."
        )
    return form


def _size(headers: Headers) -> int:
    stated = headers.get("content-length", "0")
    return int(stated) if stated.isdigit() else 0


def _told(text: str, status: int) -> Response:
    return PlainTextResponse(f"{text}\n", status)


def _too_large(most: int) -> Response:
    return _told(
        f"Larger than {most:,} bytes. Put the file into the studio's folder, or start it with a "
        "larger --max-upload.",
        413,
    )
