import pytest

from gradviz.distributed.messaging.failures import (
    RemoteError,
    RpcTimeoutError,
    remote_error,
)


def test_an_error_of_elsewhere_is_caught_as_what_it_was_there():
    error = remote_error(2, "ValueError", "too small", "at line 3")

    assert isinstance(error, RemoteError)
    assert isinstance(error, ValueError)
    assert (error.node, error.kind, str(error)) == (2, "ValueError", "too small")
    assert error.remote_traceback == "at line 3"


def test_the_text_of_a_key_error_is_not_quoted():
    assert str(remote_error(0, "KeyError", "k", "")) == "k"


@pytest.mark.parametrize("kind", ["MyError", "OSError", "int", "SystemExit", "exit"])
def test_an_error_that_a_text_does_not_make_is_only_a_remote_one(kind):
    assert type(remote_error(0, kind, "x", "")) is RemoteError


def test_an_rpc_timeout_is_a_timeout_error():
    assert issubclass(RpcTimeoutError, TimeoutError)
