"""./fathom and ./test as scripts: a copy of them in a scratch tree, with stand-ins for cmake, apt-get and the like."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEEDED = "bash env awk basename cat chmod comm dirname flock grep mkdir mktemp nproc readlink rm sed sleep sort tail tee touch".split()

# Configures by writing what the script looks for, and "builds" a program that prints its folder and its arguments.
CMAKE = """#!/usr/bin/env bash
echo "$@" >> "$CALLS"
case $1 in
  --preset)
    mkdir -p build/release/bin
    echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" > build/release/CMakeCache.txt
    touch build/release/build.ninja
    ;;
  --build)
    sleep 0.2
    [[ ! -e $2/../../broken.cpp ]] || { echo "broken.cpp:1: error: no such thing"; exit 1; }
    echo "[1/1] Linking"
    printf '#!/usr/bin/env bash\\npwd\\nprintf "<%%s>" "$@"\\n' > "$2/bin/fathom"
    chmod +x "$2/bin/fathom"
    ;;
esac
"""
ALL_INSTALLED = """#!/usr/bin/env bash
shift 3
printf 'installed %s\\n' "$@"
"""
NONE_OF_TORCH = """#!/usr/bin/env bash
shift 3
printf 'installed %s\\n' "$@" | grep -v libtorch
echo 'dpkg-query: no packages found matching libtorch-dev' >&2
exit 1
"""


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.scratch = Path(folder.name).resolve()
        self.clone = self.scratch / "a clone"
        (self.clone / "tools").mkdir(parents=True)
        for name in ["fathom", "test", "CMakePresets.json", "tools/setup.sh", "tools/packages.txt", "tools/packages-test.txt"]:
            shutil.copy(ROOT / name, self.clone / name)
        # The only folder on PATH, so that what is not put here does not exist.
        self.bin = self.scratch / "bin"
        self.bin.mkdir()
        for name in NEEDED:
            (self.bin / name).symlink_to(shutil.which(name))
        self.calls = self.scratch / "calls"
        self.provide("cmake", CMAKE)

    def provide(self, name, text):
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def provide_debian(self, dpkg_query=ALL_INSTALLED, user="0"):
        self.provide("dpkg-query", dpkg_query)
        self.provide("apt-get", '#!/usr/bin/env bash\necho "apt-get $@" >> "$CALLS"\n')
        self.provide("id", f"#!/usr/bin/env bash\necho {user}\n")

    def start(self, *arguments, program=None, cwd=None, **variables):
        return subprocess.Popen(
            [str(program or self.clone / "fathom"), *arguments], cwd=cwd or self.clone, text=True,
            env={"PATH": str(self.bin), "CALLS": str(self.calls), **variables}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_script(self, *arguments, **options):
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def commands(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def test_passes_arguments_unchanged_and_keeps_the_folder(self):
        self.provide_debian()
        status, out, _ = self.run_script("a b", "", "*", "--x='y'", cwd="/")
        self.assertEqual((status, out), (0, "/\n<a b><><*><--x='y'>"))

    def test_works_through_a_symlink(self):
        self.provide_debian()
        link = self.scratch / "link"
        link.symlink_to(self.clone / "fathom")
        status, out, _ = self.run_script("x", program=link, cwd=self.scratch)
        self.assertEqual((status, out), (0, f"{self.scratch}\n<x>"))

    def test_says_one_line_a_phase_and_configures_once(self):
        self.provide_debian()
        _, _, err = self.run_script()
        self.assertEqual(err.splitlines(), ["fathom: configuring", "fathom: building (about 3 minutes the first time)"])
        self.run_script()
        self.assertEqual(self.commands().count("--preset"), 1)

    def test_configures_anew_when_the_tree_was_moved(self):
        self.provide_debian()
        self.run_script()
        moved = self.scratch / "moved"
        self.clone.rename(moved)
        status, out, _ = self.run_script(program=moved / "fathom", cwd=moved)
        self.assertEqual((status, out), (0, f"{moved}\n<>"))
        self.assertIn("--preset release --fresh", self.commands())

    def test_two_at_once_configure_once(self):
        self.provide_debian()
        both = [self.start(name) for name in ("one", "two")]
        outputs = [process.communicate(timeout=60)[0] for process in both]
        self.assertEqual(outputs, [f"{self.clone}\n<one>", f"{self.clone}\n<two>"])
        self.assertEqual(self.commands().count("--preset"), 1)

    def test_shows_the_log_of_a_failed_build(self):
        self.provide_debian()
        (self.clone / "broken.cpp").touch()
        status, out, err = self.run_script("x")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("broken.cpp:1: error: no such thing", err)
        self.assertIn(f"the whole log is {self.clone}/build/build-release.log", err)

    def test_installs_what_is_missing(self):
        self.provide_debian(dpkg_query=NONE_OF_TORCH)
        status, _, err = self.run_script()
        self.assertEqual(status, 0, err)
        self.assertIn("fathom: installing 1 package(s) (libtorch-dev)", err)
        self.assertRegex(self.commands(), r"apt-get .*update\napt-get .*install --no-install-recommends libtorch-dev\n")

    def test_takes_the_torch_that_a_variable_names_in_place_of_debians(self):
        self.provide_debian(dpkg_query=NONE_OF_TORCH)
        status, _, err = self.run_script(FATHOM_TORCH_WHEEL="/some where/torch")
        self.assertEqual(status, 0, err)
        self.assertNotIn("apt-get", self.commands())
        self.assertIn("--preset release -D FATHOM_TORCH_WHEEL:PATH=/some where/torch\n", self.commands())

    def test_configures_anew_for_another_torch(self):
        self.provide_debian()
        self.run_script()
        self.run_script(FATHOM_TORCH_WHEEL="/other")
        self.assertEqual(self.commands().count("--preset"), 2)

    def test_uses_sudo_when_not_root(self):
        self.provide_debian(dpkg_query=NONE_OF_TORCH, user="1000")
        self.provide("sudo", '#!/usr/bin/env bash\necho sudo >> "$CALLS"\nexec "$@"\n')
        status, _, err = self.run_script()
        self.assertEqual(status, 0, err)
        self.assertIn("sudo\napt-get", self.commands())

    def test_without_root_and_sudo_says_the_command_to_run(self):
        self.provide_debian(dpkg_query=NONE_OF_TORCH, user="1000")
        status, _, err = self.run_script()
        self.assertEqual(status, 2)
        self.assertIn("apt-get install --no-install-recommends libtorch-dev\n", err)
        self.assertEqual(self.commands(), "")

    def test_without_apt_lists_what_is_needed(self):
        status, _, err = self.run_script()
        self.assertEqual(status, 2)
        self.assertIn("no apt-get", err)
        self.assertIn("\n  libtorch-dev\n", err)
        self.assertNotIn("#", err)

    def test_without_apt_a_configured_tree_is_enough(self):
        self.provide_debian()
        self.run_script()
        (self.bin / "apt-get").unlink()
        self.assertEqual(self.run_script("x")[:2], (0, f"{self.clone}\n<x>"))

    def test_help_of_test_needs_no_build(self):
        status, out, _ = self.run_script("--help", program=self.clone / "test")
        self.assertEqual(status, 0)
        self.assertIn("usage: ./test", out)
        self.assertEqual(self.commands(), "")


if __name__ == "__main__":
    unittest.main()
