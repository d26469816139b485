"""tools/platforms as a script, with stand-ins for what needs root: debootstrap, unshare, chroot and apt-get."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Runs nothing: makes the folder that debootstrap would fill, and answers a command within a system as `$ANSWERS/SUITE` says.
UNSHARE = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
if [[ $1 == debootstrap ]]; then
  echo "debootstrap $*" >> "$CALLS"
  [[ ! -e $ANSWERS/no-$4 ]] || { echo "E: no such suite"; exit 1; }
  mkdir -p "$5/etc/apt/apt.conf.d" "$5/etc/sudoers.d" "$5/root" "$5/home/newcomer"
  exit
fi
system=$5 command=$7
echo "$(basename "$system"): $command" >> "$CALLS"
[[ ! -e $ANSWERS/fail-$(basename "$system") ]] || { echo "broken.cpp:1: error"; exit 3; }
[[ $command != *ctest* ]] || echo "$(cat "$ANSWERS/tests")"
"""
CHROOT = """#!/usr/bin/env bash
[[ $2 != dpkg-query ]] || printf 'bash\\ncoreutils\\n'
"""
APT = "#!/usr/bin/env bash\necho somewhere/debian\n"


class PlatformsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name)
        self.folder, self.answers, self.calls = self.scratch / "systems", self.scratch / "answers", self.scratch / "calls"
        for each in (self.scratch / "bin", self.answers):
            each.mkdir()
        for name, text in {"unshare": UNSHARE, "chroot": CHROOT, "apt-get": APT, "debootstrap": "", "dpkg-query": "", "id": "#!/bin/sh\necho 0\n",
                           "git": "#!/bin/sh\ncase $* in *clone*) for last; do :; done; mkdir -p $last;; esac\n"}.items():
            (self.scratch / "bin" / name).write_text(text)
            (self.scratch / "bin" / name).chmod(0o755)
        (self.answers / "tests").write_text("100% tests passed, 0 tests failed out of 12")

    def run_rows(self, *arguments):
        return subprocess.run([str(ROOT / "tools" / "platforms"), "--folder", str(self.folder), *arguments], text=True, capture_output=True,
                              env={"PATH": f"{self.scratch}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.scratch),
                                   "CALLS": str(self.calls), "ANSWERS": str(self.answers)}, timeout=500)

    def test_a_row_that_passes_says_its_tests_and_leaves_no_system(self):
        done = self.run_rows("debian13-plain")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^debian13-plain +passed +\d+ s +0 packages +12 of 12 tests; packages \d+ s; build \d+ s; tests \d+ s\n$")
        self.assertFalse((self.folder / "row-debian13-plain").exists())
        self.assertIn("== tests: ctest", (self.folder / "logs" / "debian13-plain.log").read_text())

    def test_goes_on_after_a_row_that_fails_and_keeps_its_system(self):
        (self.answers / "fail-row-debian12-plain").touch()
        done = self.run_rows("debian12-plain", "debian13-plain")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"debian12-plain +FAILED .* no tests; packages \d+ s \(failed\)\n")
        self.assertIn("broken.cpp:1: error", done.stdout)
        self.assertRegex(done.stdout, r"\ndebian13-plain +passed ")
        self.assertTrue((self.folder / "row-debian12-plain").exists())

    def test_a_system_that_cannot_be_made_is_a_failed_row(self):
        (self.answers / "no-trixie").touch()
        done = self.run_rows("debian13-plain", "debian12-plain")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"debian13-plain +FAILED +the system could not be made")
        self.assertRegex(done.stdout, r"\ndebian12-plain +passed ")

    def test_a_pattern_without_tests_does_not_pass(self):
        (self.answers / "tests").write_text("No tests were found!!!")
        self.assertRegex(self.run_rows("debian13-plain", "--tests", "nothing").stdout, r"debian13-plain +FAILED ")
        self.assertIn("-R 'nothing'", self.calls.read_text())

    def test_failed_tests_are_counted(self):
        (self.answers / "tests").write_text("83% tests passed, 2 tests failed out of 12")
        self.assertIn("10 of 12 tests", self.run_rows("debian13-plain").stdout)

    def test_the_mirror_is_that_of_apt_unless_one_is_named(self):
        self.run_rows("debian13-plain")
        self.assertIn("somewhere/debian\n", self.calls.read_text())
        self.folder = self.scratch / "others"
        self.run_rows("debian13-plain", "--mirror", "elsewhere/debian")
        self.assertIn("elsewhere/debian\n", self.calls.read_text())

    def test_a_minimal_system_is_made_once(self):
        self.run_rows("debian13-plain", "debian13-plain-clang")
        self.assertEqual(self.calls.read_text().count("debootstrap"), 2)  # its name and its own first word
        self.assertIn("export CC=clang CXX=clang++ && cmake", self.calls.read_text())

    def test_a_readme_row_runs_both_commands_and_a_row_with_the_newest_torch_names_it(self):
        self.run_rows("debian13-torch")
        said = self.calls.read_text()
        self.assertIn("export FATHOM_TORCH_WHEEL=~/torch/torch && ./fathom run annuli && test -s runs/annuli/report.html\n", said)
        self.assertIn("export FATHOM_TORCH_WHEEL=~/torch/torch && ./test", said)
        self.assertIn("sudo apt-get -y update", said)

    def test_an_unknown_row_is_refused_with_those_that_there_are(self):
        done = self.run_rows("debian14")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("unknown row 'debian14'; rows: debian12 debian12-sudo debian13", done.stderr)


if __name__ == "__main__":
    unittest.main()
