"""The checks in tools/ must fail on a bad tree with the right words, and pass on a good one."""
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path):
        return (self.root / path).read_text()

    def run_tool(self, name, *arguments):
        command = [str(TOOLS / name), *arguments, "--root", str(self.root)]
        return subprocess.run(command, capture_output=True, text=True)

    def assert_passes(self, name, *arguments):
        result = self.run_tool(name, *arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def assert_fails(self, expected, name, *arguments):
        result = self.run_tool(name, *arguments)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn(expected, result.stdout + result.stderr)


class Format(ToolTest):
    def test_lists_a_file_that_is_not_formatted_and_leaves_it_alone(self):
        self.write("src/fathom/ode/a.cpp", "int  f( ) { return 1 ; }\n")
        self.assert_fails("src/fathom/ode/a.cpp: not formatted", "format", "--check")
        self.assertEqual(self.read("src/fathom/ode/a.cpp"), "int  f( ) { return 1 ; }\n")

    def test_formats_in_place_and_is_then_content(self):
        self.write("app/main.cpp", "int  f( ) { return 1 ; }\n")
        self.assert_passes("format")
        self.assertEqual(self.read("app/main.cpp"), "int f() { return 1; }\n")
        self.assert_passes("format", "--check")

    def test_an_empty_tree_passes(self):
        self.assert_passes("format", "--check")


class Layers(ToolTest):
    def test_an_arrow_of_the_table_passes_also_when_transitive(self):
        self.write("src/fathom/sensitivity/a.cpp", '#include "fathom/ode/b.hpp"\n#include <torch/torch.h>\n')
        self.write("src/fathom/ode/b.hpp", "#include <vector>\n")
        self.assert_passes("check_layers")

    def test_an_include_upwards_fails(self):
        self.write("src/fathom/ode/a.hpp", '\n#include "fathom/tensor/b.hpp"\n')
        self.assert_fails("src/fathom/ode/a.hpp:2: ode -> tensor: ode may include support", "check_layers")

    def test_an_include_sideways_fails(self):
        self.write("src/fathom/tensor/a.cpp", '#include "fathom/fused/b.hpp"\n')
        self.assert_fails("src/fathom/tensor/a.cpp:1: tensor -> fused", "check_layers")

    def test_torch_in_a_torch_free_folder_fails(self):
        self.write("src/fathom/fused/a.cpp", "#include <ATen/ATen.h>\n")
        self.assert_fails("src/fathom/fused/a.cpp:1: fused -> torch", "check_layers")

    def test_torch_through_one_of_our_headers_fails(self):
        self.write("src/fathom/report/a.cpp", '#include "fathom/support/b.hpp"\n')
        self.write("src/fathom/support/b.hpp", '#include "fathom/support/c.hpp"\n')
        self.write("src/fathom/support/c.hpp", "#include <c10/util/Optional.h>\n")
        self.assert_fails("includes fathom/support/b.hpp -> fathom/support/c.hpp -> c10/util/Optional.h", "check_layers")

    def test_only_the_bases_of_depth_are_torch_free(self):
        self.write("src/fathom/depth/layer.cpp", "#include <torch/torch.h>\n")
        self.assert_passes("check_layers")
        self.write("src/fathom/depth/basis.hpp", "#include <torch/torch.h>\n")
        self.assert_fails("src/fathom/depth/basis.hpp:1: depth -> torch", "check_layers")

    def test_the_umbrella_header_may_include_all_but_nobody_may_include_it(self):
        self.write("src/fathom/fathom.hpp", '#include "fathom/train/a.hpp"\n#include "fathom/ode/b.hpp"\n')
        self.assert_passes("check_layers")
        self.write("src/fathom/model/a.cpp", '#include "fathom/fathom.hpp"\n')
        self.assert_fails("src/fathom/model/a.cpp:1: model -> fathom/fathom.hpp", "check_layers")

    def test_a_folder_without_arrows_fails(self):
        self.write("src/fathom/attic/a.cpp", "")
        self.assert_fails("folder 'attic' has no arrows yet", "check_layers")


class Snippets(ToolTest):
    EXAMPLE = "int main() {\n  // [solve]\n  if (true) {\n    run();\n  }\n  // [/solve]\n}\n"
    MARK = "<!-- snippet: examples/a.cpp#solve -->\n"

    def setUp(self):
        super().setUp()
        self.write("examples/a.cpp", self.EXAMPLE)

    def test_a_block_equal_to_its_region_passes(self):
        self.write("README.md", self.MARK + "```cpp\nif (true) {\n  run();\n}\n```\n")
        self.assert_passes("check_snippets")

    def test_a_block_that_differs_fails_and_can_be_fixed(self):
        self.write("docs/guide/a.md", "Text\n\n" + self.MARK + "```cpp\nold();\n```\nmore\n\n" + self.MARK + "```cpp\n```\n")
        self.assert_fails("docs/guide/a.md:4: differs from examples/a.cpp#solve", "check_snippets")
        self.assert_passes("check_snippets", "--fix")
        block = self.MARK + "```cpp\nif (true) {\n  run();\n}\n```\n"
        self.assertEqual(self.read("docs/guide/a.md"), "Text\n\n" + block + "more\n\n" + block)

    def test_an_unmarked_block_fails_even_with_fix(self):
        self.write("CONTRIBUTING.md", "```cpp\nx();\n```\n")
        self.assert_fails("CONTRIBUTING.md:1: C++ block without", "check_snippets")
        self.assert_fails("CONTRIBUTING.md:1: C++ block without", "check_snippets", "--fix")

    def test_an_unmarked_block_with_a_reason_passes(self):
        self.write("README.md", "<!-- not compiled: a sketch -->\n```cpp\nx();\n```\n```sh\nls\n```\n")
        self.assert_passes("check_snippets")

    def test_a_block_of_cmake_is_held_against_its_region_too(self):
        self.write("a/CMakeLists.txt", "project(a)\n# [use]\nfind_package(b REQUIRED)\n# [/use]\n")
        mark = "<!-- snippet: a/CMakeLists.txt#use -->\n"
        self.write("README.md", mark + "```cmake\nfind_package(b REQUIRED)\n```\n")
        self.assert_passes("check_snippets")
        self.write("README.md", mark + "```cmake\nfind_package(b)\n```\n")
        self.assert_fails("README.md:2: differs from a/CMakeLists.txt#use", "check_snippets")
        self.write("README.md", "```cmake\nfind_package(b)\n```\n")
        self.assert_fails("README.md:1: CMake block without", "check_snippets")

    def test_a_missing_file_and_a_missing_region_fail(self):
        self.write("README.md", "<!-- snippet: examples/b.cpp#solve -->\n```cpp\n```\n")
        self.assert_fails("examples/b.cpp does not exist", "check_snippets")
        self.write("README.md", "<!-- snippet: examples/a.cpp#gone -->\n```cpp\n```\n")
        self.assert_fails("needs exactly one '// [gone]'", "check_snippets")


class Embed(unittest.TestCase):
    def test_every_byte_of_a_text_is_embedded(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        text = "f(\"@name@\", '${name}', \\n, [a;b], ];[ \\; $ENV{HOME} #c);\n"
        (root / "code.js").write_text(text)
        (root / "script.cmake").write_text(
            f"include({TOOLS.parent}/cmake/Embed.cmake)\nset(name lost)\nfile(READ {root}/code.js code)\n"
            f"fathom_embed({root}/assets.cpp assets.hpp assets code)\n")
        for _ in range(2):  # the second time the file is there
            subprocess.run(["cmake", "-P", root / "script.cmake"], check=True)
            source = (root / "assets.cpp").read_text()
            self.assertIn(f'std::string_view code() {{\n  return R"__asset__({text})__asset__";\n}}', source)
            written = (root / "assets.cpp").stat().st_mtime_ns
        subprocess.run(["cmake", "-P", root / "script.cmake"], check=True)
        self.assertEqual((root / "assets.cpp").stat().st_mtime_ns, written, "unchanged, it must not be compiled again")


if __name__ == "__main__":
    unittest.main()
