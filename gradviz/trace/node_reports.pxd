cdef class NodeReports:
    cpdef node_taken(self, task, node, queue, queue_length)
    cpdef node_readied(self, task, node, producer, input_nr, size_bytes, how, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
    cpdef node_passed_on(self, task, node, freed_bytes, receiver, input_nr, size_bytes, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
