from tests.flakes.report import read_report

CASES = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_one"/>
<testcase classname="tests.a" name="test_two"><skipped/></testcase>
{}
</testsuite></testsuites>"""
FAILED = '<testcase classname="tests.a" name="test_three"><failure/></testcase>'
BROKEN = '<testcase classname="tests.a" name="test_three"><error/></testcase>'


def write(folder, *cases):
    path = folder / "results.xml"
    path.write_text(CASES.format("".join(cases)))
    return path


def test_a_run_in_which_all_passed_has_no_failures(tmp_path):
    assert read_report(write(tmp_path), 0) == (2, ())


def test_a_test_that_failed_and_broke_its_teardown_counts_once(tmp_path):
    report = read_report(write(tmp_path, FAILED, BROKEN), 1)

    assert report == (2, ("tests.a::test_three",))


def test_a_run_that_died_is_a_failure_of_its_own(tmp_path):
    report = read_report(tmp_path / "never written.xml", -11)

    assert report == (0, ("the run itself: pytest exited with -11",))


def test_a_failure_outside_of_any_test_is_not_lost(tmp_path):
    report = read_report(write(tmp_path), 1)

    assert report.failed == ("the run itself: failed outside of any test",)
