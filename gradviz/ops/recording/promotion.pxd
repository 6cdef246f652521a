cpdef operand(value)
cpdef tuple promote(a, b)
