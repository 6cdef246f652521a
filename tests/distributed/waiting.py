"""What workers of tests do meanwhile, and what must be so afterwards."""

from gradviz.testing.scheduler import sleep


def until_done(done):
    """What a worker does until another one says that all is done."""

    def program():
        while not done:
            sleep(10)

    return program


def assert_nothing_is_left(company, ranks):
    """No context, no pass and no question on any of these workers."""
    for rank in ranks:
        assert {*company.workers[rank].dist_engine.debug_info().values()} == {0}
        assert not company.transports[rank].num_pending()
