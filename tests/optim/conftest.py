import pytest

import gradviz as gv
from gradviz.optim import SGD


@pytest.fixture
def optimizer():
    return SGD([gv.tensor([1.0], requires_grad=True)], lr=1.0)
