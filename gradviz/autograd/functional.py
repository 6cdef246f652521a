"""``torch.autograd.functional``: derivatives of functions of tensors.

Every function here takes a function of one or several tensors, and a tensor or a tuple
of them to call it with. What it returns has the structure of what the function takes
or returns: a tensor for a tensor, a tuple for a tuple.
"""

from gradviz.autograd.functional_matrices import hessian, jacobian
from gradviz.autograd.functional_products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
