"""What benchmarks/compare makes of the times that its entries give: figures, JSON and document. No entry runs here."""
import importlib.util
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def load_compare():
    loader = SourceFileLoader("compare", str(ROOT / "benchmarks" / "compare"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", loader))
    loader.exec_module(module)
    return module


class Finished:
    """An entry that has given its times; `result` is that of a real one."""

    def __init__(self, name, times, evaluations=8, problem=None):
        self.name, self.times, self.evaluations, self.problem = name, times, evaluations, problem
        self.version, self.loss = "1", 0.5


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.compare = load_compare()
        Finished.result = self.compare.Entry.result
        self.rounds = []

        def run_round(work_file, entries, threads, least, most, seconds):
            self.rounds.append(entries)
            times = {"fathom": [0.1, 0.2, 0.3], "torchdyn": [3.0, 4.0, 5.0], "torchdyn-adjoint": [9.0] * 3, "diffrax": [1.0] * 3}
            return [Finished(e, list(times.get(e, [])), problem=None if e in times else "cannot run this work") for e in entries]

        self.compare.run_round = run_round
        self.compare.write_work = lambda name, work: Path("unused.json")
        self.entries = ["fathom", "torchdyn", "torchdyn-adjoint", "torchode-jit", "diffrax"]

    def measured(self):
        return self.compare.measure("W1", self.compare.WORKS["W1"], self.entries, 1, 60, 60, rounds=2)

    def test_ratios_are_those_of_medians_to_the_best_of_each_family(self):
        answer = self.measured()
        self.assertAlmostEqual(answer["ratio_torch"], 4.0 / 0.2)
        self.assertAlmostEqual(answer["ratio_diffrax"], 1.0 / 0.2)

    def test_entries_have_the_keys_that_others_read(self):
        ours = self.measured()["entries"][0]
        self.assertEqual(ours["name"], "fathom")
        self.assertAlmostEqual(ours["median_ms"], 0.2)
        self.assertEqual((ours["evaluations"], ours["threads"], ours["repeats"]), (8, 1, 6))

    def test_an_entry_that_cannot_run_is_reported_and_not_asked_again(self):
        answer = self.measured()
        self.assertEqual([e for e in answer["entries"] if "problem" in e], [{"name": "torchode-jit", "problem": "cannot run this work"}])
        self.assertEqual([entries.count("torchode-jit") for entries in self.rounds], [1, 0])

    def test_a_log_ends_in_its_error(self):
        log = "warming up\nRuntimeError: \n  'dict' cannot be used as a value:\n  File x\n    z = state[:, :2]\n"
        self.assertEqual(self.compare.last_error(log), "RuntimeError: 'dict' cannot be used as a value:")
        self.assertEqual(self.compare.last_error("one\nValueError: two\n  three\n"), "ValueError: two")
        self.assertEqual(self.compare.last_error(""), "it ended without a word")

    def test_the_document_says_ratios_what_is_absent_and_keeps_the_growth_of_an_earlier_sitting(self):
        from document import write_document
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "benchmarks.md"
            page.write_text("# Benchmarks\n\n## How cost grows\n\nmeasured before\n\n## Without a clock\n")
            write_document({"works": {"W1": self.measured()}}, Path(folder))
            text = page.read_text()
        self.assertIn("| W1 annuli | 20.0x |", text)
        self.assertIn("Not measured in this sitting: W2 small batch,", text)
        self.assertIn("Not able to run any of these works: torchode-jit.", text)
        self.assertIn("measured before", text)

    def test_turns_without_a_second_core_are_left_out_and_counted(self):
        turns = [{"one": 2.0, "two": 1.0, "sharing": 1.0}] * 3 + [{"one": 2.0, "two": 2.0, "sharing": 1.9}]
        answer = self.compare.second_core_answer(turns)
        self.assertEqual((answer["ratio"], answer["turns"], answer["turns_left_out"]), (2.0, 4, 1))


if __name__ == "__main__":
    unittest.main()
