"""Requests and responses of HTTP/1.1: no more of it than a browser needs here."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

#: Headers of every response: it is looked at here, by nobody else, and not kept.
_ALWAYS: Final = (
    ("Cache-Control", "no-store"),
    ("Connection", "close"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
)

#: Content security policy of a page that says nothing else: nothing is allowed.
NOTHING: Final = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_LINE: Final = re.compile(r"([A-Z]{1,16}) (/[!-~]*) HTTP/1\.[01]")
_FIELD: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([ -~\t]*?)[ \t]*")


class BadRequestError(Exception):
    """Error for data that is no request that a browser would send."""


class ViewRequest(NamedTuple):
    """A request, as far as anybody looks at it.

    Attributes:
        method: Such as ``GET``.
        path: Decoded; begins with a slash.
        query: Name -> value; of several of a name the last.
        headers: Name in lower case -> value.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


class ViewResponse(NamedTuple):
    """Answer to a request.

    Attributes:
        status: The code.
        body: Its content.
        kind: Its media type.
        policy: Its content security policy.
        headers: More headers.
        is_page: True if it is a page that a person wanted to see.
    """

    status: HTTPStatus
    body: bytes = b""
    kind: str = "text/plain; charset=utf-8"
    policy: str = NOTHING
    headers: tuple[tuple[str, str], ...] = ()
    is_page: bool = False


def parse_request(head: bytes) -> ViewRequest:
    """The request that begins with `head`, up to its empty line.

    Raises:
        BadRequestError: It is none, has a body, or says a thing twice.
    """
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if (line := _LINE.fullmatch(first)) is None:
        raise BadRequestError("this is no request of HTTP/1.1")
    headers: dict[str, str] = {}
    for one in lines:
        field = _FIELD.fullmatch(one)
        if field is None or field[1].lower() in headers:
            raise BadRequestError("a header is malformed, or there twice")
        headers[field[1].lower()] = field[2]
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequestError("a request has no body here")
    path, _, query = line[2].partition("?")
    try:
        decoded = unquote(path, errors="surrogateescape")  # as names of files are
        values = dict(parse_qsl(query, errors="strict", max_num_fields=20))
    except ValueError:
        raise BadRequestError("the address is malformed") from None
    return ViewRequest(line[1], decoded, values, headers)


def format_response(response: ViewResponse, *, has_body: bool = True) -> bytes:
    """The bytes of a response, without its body for a HEAD."""
    headers = (
        ("Content-Type", response.kind),
        ("Content-Length", str(len(response.body))),
        ("Content-Security-Policy", response.policy),
        *_ALWAYS,
        *response.headers,
    )
    lines = [f"HTTP/1.1 {response.status.value} {response.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return head + response.body if has_body else head


def refusal(status: HTTPStatus, why: str) -> ViewResponse:
    """A response that says in one line why there is no other."""
    allowed = (("Allow", "GET, HEAD"),) if status == 405 else ()
    return ViewResponse(status, f"{why}\n".encode(), headers=allowed)


def moved(address: str, *headers: tuple[str, str]) -> ViewResponse:
    """A response that sends a browser to another address, of ours."""
    return ViewResponse(HTTPStatus.SEE_OTHER, headers=(("Location", address), *headers))
