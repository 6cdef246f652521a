cdef _users_frame(frame, dict is_users)
