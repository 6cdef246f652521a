import gradviz as gv


def test_a_program_can_ask_whether_there_is_cuda():
    assert gv.cuda.is_available() is (gv.cuda.device_count() > 0)
