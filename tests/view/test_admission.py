"""Admission of clients."""

import pytest

from gradviz.view.admission import Admission, new_token
from tests.view.conftest import TOKEN, body, header, status


def test_the_address_gives_a_cookie_that_scripts_and_other_sites_do_not_get(serve):
    served = serve()

    answer = served.ask(f"/?token={TOKEN}", "Cookie: ")
    assert status(answer) == 303
    assert header(answer, "Location") == "/"
    assert header(answer, "Set-Cookie") == (
        f"{served.cookie}; Path=/; HttpOnly; SameSite=Strict"
    )


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "gradviz-{port}=",
        "gradviz-{port}=" + TOKEN[:-1],
        "gradviz-{port}=" + TOKEN + "0",
        "gradviz-{port}=\x20",
        "gradviz-1=" + TOKEN,
        TOKEN,
    ],
)
def test_nobody_asks_without_the_token(serve, cookie):
    served = serve()

    answer = served.ask("/", f"Cookie: {cookie.format(port=served.port)}")
    assert status(answer) == 403
    assert b"open the address" in body(answer)


@pytest.mark.parametrize(
    "token", ["", "x", TOKEN[:-1], TOKEN.upper(), "%C3%A9", TOKEN + "x"]
)
def test_a_wrong_token_gives_no_cookie(serve, token):
    answer = serve().ask(f"/?token={token}", "Cookie: ")

    assert status(answer) == 403
    assert header(answer, "Set-Cookie") is None


def test_other_cookies_of_the_host_do_not_matter(serve):
    served = serve()

    assert status(served.ask("/", f"Cookie: a=b; {served.cookie}; c")) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1:1",
        "localhost",
        "127.0.0.1:{port}@evil.example",
    ],
)
@pytest.mark.parametrize("target", ["/", f"/?token={TOKEN}"])
def test_a_host_that_is_not_ours_is_refused(serve, host, target):
    served = serve()

    assert status(served.ask(target, f"Host: {host.format(port=served.port)}")) == 403


def test_localhost_is_a_name_of_it(serve):
    served = serve()

    assert status(served.ask("/", f"Host: localhost:{served.port}")) == 200


@pytest.mark.parametrize(
    "said",
    [
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: ",
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1",
        "Origin: https://127.0.0.1:{port}",
    ],
)
def test_a_page_of_another_site_is_refused(serve, said):
    served = serve()

    expected = 200 if said.endswith(": ") else 403  # an empty header is not sent
    assert status(served.ask("/", said.format(port=served.port))) == expected


@pytest.mark.parametrize(
    "said",
    [
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Site: none",
        "Origin: http://127.0.0.1:{port}",
    ],
)
def test_our_own_page_and_what_a_person_typed_may_ask(serve, said):
    served = serve()

    assert status(served.ask("/", said.format(port=served.port))) == 200


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"]
)
def test_only_get_and_head_are_allowed(serve, method):
    answer = serve().ask("/", method=method)

    assert status(answer) == 405
    assert header(answer, "Allow") == "GET, HEAD"


def test_a_token_has_128_bits_and_is_always_another():
    assert len(bytes.fromhex(new_token())) == 16
    assert new_token() != new_token()
    assert Admission("t", 8).address == "http://127.0.0.1:8/?token=t"
