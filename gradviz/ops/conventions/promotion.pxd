cpdef operand(value)
cpdef tuple promote(a, b)
cpdef number_beside(array, number)
