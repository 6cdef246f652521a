"""Special functions: ``gradviz.special``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

from gradviz.ops.activation import sigmoid as expit
from gradviz.ops.error_functions import (
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
)
from gradviz.ops.gamma_functions import digamma, polygamma
from gradviz.ops.gamma_functions import digamma as psi
from gradviz.ops.gamma_functions import lgamma as gammaln
from gradviz.ops.gamma_functions import mvlgamma as multigammaln
from gradviz.ops.reduction import logsumexp
from gradviz.ops.rounding import round  # noqa: A004 - PyTorch's name
from gradviz.ops.softmax import log_softmax, softmax
from gradviz.ops.special_functions import entr, logit, xlog1py, xlogy
from gradviz.ops.transcendental import exp2, expm1, log1p
from gradviz.ops.trigonometric import sinc

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
]
