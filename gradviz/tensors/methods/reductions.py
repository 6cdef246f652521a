"""Methods that look at all elements of a dimension: sums, extremes, orders."""

from gradviz.ops.algebra import covariance
from gradviz.ops.layers import distance
from gradviz.ops.recording.in_place import in_place
from gradviz.ops.recording.variable import Variable
from gradviz.ops.reductions import (
    cumulative,
    differences,
    extremes,
    order_statistics,
    quantiles,
    reduction,
    renorm,
    sorting,
    statistics,
    uniqueness,
)


class Reductions(Variable):
    """Sums, means, extremes, and what is sorted or summed along a dimension."""

    __slots__ = ()

    all = reduction.all
    any = reduction.any
    count_nonzero = reduction.count_nonzero
    logsumexp = reduction.logsumexp
    mean = reduction.mean
    nanmean = reduction.nanmean
    nansum = reduction.nansum
    prod = reduction.prod
    sum = reduction.sum

    amax = extremes.amax
    amin = extremes.amin
    aminmax = extremes.aminmax
    argmax = extremes.argmax
    argmin = extremes.argmin
    max = extremes.max
    min = extremes.min

    corrcoef = covariance.corrcoef
    cov = covariance.cov

    dist = distance.dist

    bincount = statistics.bincount
    histc = statistics.histc
    std = statistics.std
    var = statistics.var

    kthvalue = order_statistics.kthvalue
    median = order_statistics.median
    mode = order_statistics.mode
    nanmedian = order_statistics.nanmedian
    nanquantile = quantiles.nanquantile
    quantile = quantiles.quantile

    renorm = renorm.renorm
    renorm_ = in_place(renorm)

    cummax = cumulative.cummax
    cummin = cumulative.cummin
    cumprod = cumulative.cumprod
    cumprod_ = in_place(cumulative.cumprod)
    cumsum = cumulative.cumsum
    cumsum_ = in_place(cumulative.cumsum)
    diff = differences.diff
    logcumsumexp = cumulative.logcumsumexp

    argsort = sorting.argsort
    msort = sorting.msort
    sort = sorting.sort
    topk = sorting.topk
    unique = uniqueness.unique
    unique_consecutive = uniqueness.unique_consecutive
