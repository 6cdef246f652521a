cpdef size_bytes(gradient)
cpdef sum_of_sizes(gradients)
