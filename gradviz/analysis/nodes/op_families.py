"""The family of the operation of a node, as far as its name says it."""

import functools
import re
from typing import Final, Literal, TypeAlias, get_args

OpFamily: TypeAlias = Literal[
    "products",
    "norms and sums",
    "activations",
    "indexing",
    "pointwise",
    "losses",
    "shapes",
    "other",
]

OP_FAMILIES: Final[tuple[OpFamily, ...]] = get_args(OpFamily)

#: Names of operations in small letters; the first family that one fits is its own.
_WORDS: Final[dict[OpFamily, str]] = {
    "products": (
        r"(b|add|addb|baddb)?mm|(add)?mv|addr|v?dot|tensordot|(bi|tri)?linear"
        r"|einsum|outer|ger|kron|cdist|.*conv(olution)?|scaleddotproduct.*"
        r"|.*attention.*|.*matmul.*|cholesky.*|linalg.*|.*solve.*|inverse|svd|qr"
        r"|lu.*|det|slogdet|fft.*"
    ),
    "losses": (r".*loss.*|binarycrossentropy.*|crossentropy.*|kldiv|nll.*|ctc.*"),
    "norms and sums": (
        r".*norm.*|sum.*|nansum|mean.*|var.*|std.*|prod|a?max|a?min|aminmax"
        r"|median|(nan)?quantile|logsumexp|cum.*|logcumsumexp|mode|trace"
        r"|.*pool.*|renorm|dist|kthvalue|sort|topk|all|any"
    ),
    "activations": (
        r""
        r".*(elu|sigmoid|(?<!a)tanh|softmax|softplus|softmin|softsign|shrink|silu|mish|glu|swish|dropout)"
        r"|.*relu.*"
    ),
    "indexing": (
        r"index.*|embedding.*|gather.*|.*scatter.*|take.*|masked.*|.*select.*"
        r"|slice.*|put.*|where|gridsampler.*|.*upsample.*|nonzero|fold|unfold.*"
        r"|im2col|col2im|asstrided.*|copyslices"
    ),
    "shapes": (
        r"t|view.*|(unsafe)?(re)?view|reshape.*|.*transpose.*|permute.*|expand.*"
        r"|(un)?squeeze.*|(unsafe)?(split|chunk).*|cat|stack|repeat.*|unbind.*"
        r"|flip|roll|clone|alias.*|detach|tocopy|copy(?!sign).*|contiguous"
        r"|diag.*|tri[ul]|constantpad.*|.*pad.*|flatten|unflatten|narrow|movedim"
        r"|swap.*|meshgrid|blockdiag|rot|pixel.*|channelshuffle|real|imag"
        r"|viewas.*"
    ),
    "pointwise": (
        r"add.*|sub|rsub|r?div|mul|neg|abs|sgn|sign|exp.*|log.*|pow.*|sqrt|rsqrt"
        r"|a?(sin|cos|tan)h?|sinc|erf.*|clamp.*|clip|lerp|reciprocal|square"
        r"|atan2|f?(max|min)(imum)?|fmod|remainder|round|floor|ceil|trunc|frac"
        r"|hypot|x?logy|.*gamma.*|nantonum|threshold|copysign|special.*|i|zero"
        r"|bernoulli|poisson|ldexp|deg2rad|rad2deg|polar|complex|angle|conj.*"
    ),
}
_PATTERNS: Final = tuple((family, re.compile(one)) for family, one in _WORDS.items())


@functools.lru_cache(maxsize=1 << 12)
def op_family(operation: str) -> OpFamily:
    """The family of an operation, or of its node: of ``Addmm`` and ``AddmmBackward0``.

    What nobody knows is ``other``.
    """
    name = re.sub(r"\d+$", "", operation.replace("_", "").lower())
    name = name.partition("backward")[0]
    for family, pattern in _PATTERNS:
        if pattern.fullmatch(name):
            return family
    return "other"
