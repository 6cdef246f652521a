cpdef form_of(function, tuple args, kwargs, key, bint may_view=*)
