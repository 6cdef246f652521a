cimport cython
from cpython cimport time as computer
from libc.stdint cimport int64_t
from gradviz.trace.node_reports cimport NodeReports
from gradviz.trace.recording.processor_time cimport ThreadTime

cdef Py_ssize_t _MANY, _MANY_WHOLE, _WIDTH

cdef class NodeRows(NodeReports):
    cdef dict rows
    cdef ThreadTime time
    cdef bint is_curious, is_direct
    cdef object call_writer, line, origins
    cdef object when, when_passed_on, when_readied, when_recorded, when_taken
    cpdef node_created(self, node)
    cpdef node_recorded(self, node, size_bytes)
    cdef _look_closer(self, node)
    @cython.locals(time=ThreadTime, moment=int64_t)
    cpdef node_taken(self, task, node, queue, queue_length)
    cpdef node_readied(self, task, node, producer, input_nr, size_bytes, how, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
    @cython.locals(time=ThreadTime, moment=int64_t, took=int64_t)
    cpdef node_passed_on(self, task, node, freed_bytes, receiver, input_nr, size_bytes, queue, reentrant_depth, sequence_nr, queue_length, outstanding)
    cpdef task_pushed(self, task, node, queue, reentrant_depth, sequence_nr, queue_length, outstanding, pushed_by, what)
    cpdef gradient_buffered(self, task, node, producer, input_nr, remaining, size_bytes, how)
    cpdef gradient_accumulated(self, task, node, how)
    cpdef buffer_freed(self, task, node, size_bytes)
    @cython.locals(time=ThreadTime, moment=int64_t, took=int64_t)
    cpdef node_completed(self, task, node)
