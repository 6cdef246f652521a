import pytest

import gradviz as gv
from gradviz.autograd import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)

ENABLED = "Anomaly Detection has been enabled"


def test_the_block_says_that_it_is_slow_and_ends_with_the_block():
    with pytest.warns(UserWarning, match=ENABLED):
        block = detect_anomaly(check_nan=False)
    with block:
        assert is_anomaly_enabled()
        assert not is_anomaly_check_nan_enabled()

    assert not is_anomaly_enabled()


def test_blocks_nest():
    with set_detect_anomaly(mode=True):
        with set_detect_anomaly(mode=False):
            assert not is_anomaly_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()


def test_as_a_function_it_holds_until_it_is_turned_off():
    set_detect_anomaly(mode=True)
    assert is_anomaly_enabled()
    set_detect_anomaly(mode=False)
    assert not is_anomaly_enabled()


def test_the_op_that_made_a_nan_is_shown_with_its_line():
    with set_detect_anomaly(mode=True):
        x = gv.tensor([0.0], requires_grad=True)
        loss = (x.sqrt() * 0.0).sum()
        with (
            pytest.warns(UserWarning, match=r"x\.sqrt\(\) \* 0\.0"),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values"),
        ):
            loss.backward()
