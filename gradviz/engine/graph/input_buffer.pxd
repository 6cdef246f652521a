cpdef is_sole_reference(gradients, index, others=*)
cpdef owns_its_memory(gradient)
cpdef is_writeable(gradient)
cpdef fits(gradient, other)
