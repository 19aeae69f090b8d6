"""Callers over a real socket: a program with a token, and a browser with cookies."""

import http.client
import json
import re
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from tests.commands.conftest import PATIENCE

_TOKEN_OF_FORM: Final = re.compile(r'name="csrfmiddlewaretoken" value="([^"]*)"')


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.content)


@dataclass
class Caller:
    """Somebody who asks at one address, over one connection that is kept for as long as the server keeps it."""

    address: str
    token: str | None = None
    beside: dict[str, str] = field(default_factory=dict)
    """Headers that whoever stands in front of the service adds."""
    cookies: dict[str, str] = field(default_factory=dict)
    _connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, content: bytes | None = None, **headers: str) -> Answer:
        """Send one request; a connection that the server has closed meanwhile is opened again."""
        sent = {**self.beside, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        for last in (False, True):
            if self._connection is None:
                where = urlsplit(self.address)
                self._connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=PATIENCE)
            try:
                self._connection.request(method, path, content, sent)
                answer = self._connection.getresponse()
                break
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                self._connection = None
                # One that the server has closed meanwhile; nobody at all is another matter.
                gone = isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError))
                if last or not gone:
                    raise
        for cookie in answer.headers.get_all("Set-Cookie", []):
            for name, morsel in SimpleCookie(cookie).items():
                self.cookies[name] = morsel.value
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask as a program does."""
        if body is None:
            return self.ask(method, path, None, **headers)
        return self.ask(method, path, json.dumps(body).encode(), Content_Type="application/json", **headers)

    def fill_in(self, page: str, path: str, fields: dict[str, Any]) -> Answer:
        """Send a form as a browser does, with the mark of the page that it stands on."""
        mark = _TOKEN_OF_FORM.search(self.ask("GET", page).text)
        assert mark is not None, f"{page} has no form"
        content = urlencode({**fields, "csrfmiddlewaretoken": mark[1]}, doseq=True).encode()
        origin = {"Origin": self.origin, "Referer": f"{self.origin}{page}"}
        return self.ask("POST", path, content, Content_Type="application/x-www-form-urlencoded", **origin)

    @property
    def origin(self) -> str:
        """Where a browser believes to be."""
        where = urlsplit(self.address)
        scheme = self.beside.get("X-Forwarded-Proto", where.scheme)
        return f"{scheme}://{self.beside.get('Host', where.netloc)}"

    def sign_in(self, username: str, password: str) -> None:
        answer = self.fill_in("/sign-in", "/sign-in", {"username": username, "password": password})
        assert answer.status == 302, answer.text
        assert not answer.headers["location"].startswith("/sign-in")
