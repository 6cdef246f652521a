"""``torch.autograd.functional``: derivatives of functions of tensors.

Every function here takes a function of one or several tensors, and a tensor or a tuple
of them to call it with. Its result has the structure of that function's arguments or
results: a tensor for a tensor, a tuple for a tuple.
"""

from gradviz.autograd.functional_matrices import hessian, jacobian
from gradviz.autograd.functional_products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
