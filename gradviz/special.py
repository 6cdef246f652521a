"""Special functions: ``gradviz.special``, PyTorch's names.

What they do is said where they are defined, in `gradviz.ops`.
"""

from gradviz.ops.elementwise.activation import sigmoid as expit
from gradviz.ops.elementwise.bessel_functions import i0, i0e, i1, i1e
from gradviz.ops.elementwise.error_functions import (
    erf,
    erfc,
    erfcx,
    erfinv,
    log_ndtr,
    ndtr,
    ndtri,
)
from gradviz.ops.elementwise.gamma_functions import digamma, polygamma
from gradviz.ops.elementwise.gamma_functions import digamma as psi
from gradviz.ops.elementwise.gamma_functions import lgamma as gammaln
from gradviz.ops.elementwise.gamma_functions import mvlgamma as multigammaln
from gradviz.ops.elementwise.incomplete_gamma import igamma as gammainc
from gradviz.ops.elementwise.incomplete_gamma import igammac as gammaincc
from gradviz.ops.elementwise.rounding import round  # noqa: A004 - PyTorch's name
from gradviz.ops.elementwise.special_functions import entr, logit, xlog1py, xlogy
from gradviz.ops.elementwise.transcendental import exp2, expm1, log1p
from gradviz.ops.elementwise.trigonometric import sinc
from gradviz.ops.elementwise.zeta_functions import zeta
from gradviz.ops.recording.out import takes_out
from gradviz.ops.reductions.reduction import logsumexp
from gradviz.ops.reductions.softmax import log_softmax, softmax

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
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
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
    "zeta",
]

# All take ``out=``, but for the softmaxes.
for _name in set(__all__) - {"log_softmax", "softmax"}:
    globals()[_name] = takes_out(globals()[_name], f"special_{_name}")
