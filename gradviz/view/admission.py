"""Admission to a server: the browser that was given the address, and no other page.

Note [Who else may ask]
~~~~~~~~~~~~~~~~~~~~~~~
Other users of the machine reach a port of 127.0.0.1 as well; pages of strangers in the
same browser do, too, and one whose name is made to mean 127.0.0.1 (DNS rebinding) may
even read the answer. So: a random token, which the address has once and a cookie from
then on; a `Host` that is ours, which a rebound name is not; and no request that the
browser says comes from another site. None of these is needed where the others hold.
"""

import hmac
import secrets
from http import HTTPStatus
from typing import NamedTuple

from gradviz.view.http import ViewRequest, ViewResponse, moved, refusal

#: Values with which a browser marks requests of our own pages, and of what a person
#: typed.
_OWN = ("same-origin", "none")


def new_token() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


class Admission(NamedTuple):
    """Admission of clients.

    Attributes:
        token: Secret that they must know.
        port: Port that they call.
    """

    token: str
    port: int

    @property
    def address(self) -> str:
        """Address to open in a browser."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """The name of the cookie; cookies are shared by all ports of a host."""
        return f"gradviz-{self.port}"

    def answer(self, request: ViewRequest) -> ViewResponse | None:
        """Return the answer to a client not yet admitted; None if it is."""
        if request.method not in ("GET", "HEAD"):
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD, please")
        hosts = (f"127.0.0.1:{self.port}", f"localhost:{self.port}")
        host = request.headers.get("host", "")
        if host not in hosts:
            return refusal(
                HTTPStatus.FORBIDDEN,
                f"this is 127.0.0.1:{self.port}, which has no other name",
            )
        is_own = (
            request.headers.get("sec-fetch-site", "none") in _OWN
            and request.headers.get("origin", f"http://{host}") == f"http://{host}"
        )
        if not is_own:
            return refusal(HTTPStatus.FORBIDDEN, "another site may not ask")
        if (token := request.query.get("token")) is not None and self._is_token(token):
            kept = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            return moved("/", ("Set-Cookie", kept))
        if not self._is_token(_cookies(request).get(self.cookie, "")):
            return refusal(
                HTTPStatus.FORBIDDEN,
                "open the address that 'gradviz view' has printed, with its token",
            )
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())


def _cookies(request: ViewRequest) -> dict[str, str]:
    pairs = request.headers.get("cookie", "").split(";")
    return {
        name.strip(): value.strip()
        for name, _, value in (p.partition("=") for p in pairs)
    }
