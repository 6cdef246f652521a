cdef class NodeReports:
    cpdef node_taken(self, task, node, queue, queue_length)
    cpdef node_readied(self, task, node, producer, input_nr, size_bytes, how, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
    cpdef node_passed_on(self, task, node, freed_bytes, receiver, input_nr, size_bytes, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
    cpdef task_pushed(self, task, node, queue, reentrant_depth, sequence_nr, queue_length, outstanding, pushed_by, what)
    cpdef gradient_buffered(self, task, node, producer, input_nr, remaining, size_bytes, how)
    cpdef gradient_accumulated(self, task, node, how)
    cpdef buffer_freed(self, task, node, size_bytes)
    cpdef node_completed(self, task, node)
