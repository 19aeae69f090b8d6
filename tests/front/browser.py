"""Somebody at a browser without a browser: keeps cookies, and says what a proxy would say of them."""

import re

from tests.front.serving import Answer, Served


class Browser:
    """One connection, its cookies, and the headers that go with everything it asks."""

    def __init__(self, served: Served, prefix: str = "", **says: str) -> None:
        self._connection = served.connect()
        self._prefix, self._says = prefix, says
        self._cookies: dict[str, tuple[str, str]] = {}

    def sign_in(self, password: str, name: str = "ida") -> Answer:
        page = self.ask(f"{self._prefix}/sign-in")
        field = re.search(rb'name="csrfmiddlewaretoken" value="([A-Za-z0-9]+)"', page.body)
        assert field is not None, page.status
        form = f"csrfmiddlewaretoken={field[1].decode()}&username={name}&password={password}"
        return self.ask(f"{self._prefix}/sign-in", "POST", form, Content_Type="application/x-www-form-urlencoded")

    def forget_session(self) -> None:
        del self._cookies["sessionid"]

    def paths(self) -> set[str]:
        """Where the cookies are sent."""
        return {path for _, path in self._cookies.values()}

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        cookies = "; ".join(f"{name}={value}" for name, (value, at) in self._cookies.items() if path.startswith(at))
        told = {**self._says, **headers, **({"Cookie": cookies} if cookies else {})}
        self._connection.request(method, path, body, {name.replace("_", "-"): value for name, value in told.items()})
        answer = self._connection.getresponse()
        content = answer.read()
        for one in answer.headers.get_all("Set-Cookie", []):
            name, _, value = one.partition(";")[0].partition("=")
            at = re.search(r"[Pp]ath=([^;]+)", one)
            self._cookies[name] = (value, at[1] if at else "/")
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content, 0.0)
