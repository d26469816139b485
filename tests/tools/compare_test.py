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
        self.version, self.loss = "torch 9" if name.startswith("torch") else "1", 0.5


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.compare = load_compare()
        Finished.result = self.compare.Entry.result
        self.rounds, self.more = [], {}

        def run_round(work_file, entries, threads, least, most, seconds):
            self.rounds.append(entries)
            times = {"fathom": [0.1, 0.2, 0.3], "torchdyn": [3.0, 4.0, 5.0], "torchdyn-adjoint": [9.0] * 3, "diffrax": [1.0] * 3,
                     "torch-expert": [2.0] * 3, "fathom-tensor": [0.01] * 3, **self.more}
            return [Finished(e, list(times.get(e, [])), problem=None if e in times else "cannot run this work") for e in entries]

        self.compare.run_round = run_round
        self.compare.write_work = lambda name, work: Path("unused.json")
        self.entries = ["fathom", "fathom-tensor", "torchdyn", "torchdyn-adjoint", "torchode-jit", "torch-expert", "diffrax"]

    def measured(self):
        return self.compare.measure("W1", self.compare.WORKS["W1"], self.entries, 1, 60, 60, rounds=2)

    def test_ratios_are_those_of_medians_to_the_best_of_each_family(self):
        answer = self.measured()
        self.assertAlmostEqual(answer["ratio_torch"], 2.0 / 0.2)
        self.assertAlmostEqual(answer["ratio_diffrax"], 1.0 / 0.2)
        self.assertEqual((answer["best_torch"], answer["best_diffrax"]), ("torch-expert", "diffrax"))

    def test_the_target_is_held_against_the_best_of_all(self):
        answer = self.measured()
        self.assertAlmostEqual(answer["ratio"], 1.0 / 0.2)
        self.assertIn("against the best of all: 5.0 (target 30, NOT met)", self.compare.table("W1", answer))

    def test_the_quicker_of_fathoms_two_ways_counts_and_its_tensor_engine_does_not(self):
        self.assertEqual(self.measured()["ours"], "fathom")
        self.more, self.entries = {"fathom-core": [0.1] * 3}, [*self.entries, "fathom-core"]
        answer = self.measured()
        self.assertEqual(answer["ours"], "fathom-core")
        self.assertAlmostEqual(answer["ratio_diffrax"], 1.0 / 0.1)

    def test_without_rivals_there_is_no_ratio(self):
        self.entries = ["fathom"]
        answer = self.measured()
        self.assertEqual([answer[key] for key in ("ratio", "ratio_torch", "best_torch", "ratio_diffrax")], [None] * 4)
        self.assertIn("fathom", self.compare.table("W1", answer))

    def test_an_entry_with_another_loss_than_others_has_no_time(self):
        results = [{"name": name, "loss": loss, "median_ms": 1.0} for name, loss in [("fathom", 2.01), ("diffrax", 2.0), ("torchode", 2.5)]]
        answer = self.compare.agreeing(results)
        self.assertEqual(answer[:2], results[:2])
        self.assertEqual(answer[2], {"name": "torchode", "problem": "did another work: its loss is 2.5, that of others 2.01"})

    def test_of_two_sittings_the_later_counts(self):
        first = {"works": {"W1": 1, "W2": 1}, "growth": {"batch": []}}
        self.assertEqual(self.compare.merged([first, {"works": {"W2": 2}}]), {"works": {"W1": 1, "W2": 2}, "growth": {"batch": []}})

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
        self.assertIn("| W1 annuli | 0.2 (fathom) | torch-expert | 10.0x | 10.0x | diffrax | 5.0x | 5.0x | 30x (below) |", text)
        self.assertIn("Not measured in this sitting: W2 small batch,", text)
        self.assertIn("Not able to run any of these works: torchode-jit.", text)
        self.assertIn("- torchdyn, torchdyn-adjoint, torch-expert: torch 9\n", text)
        self.assertIn("## How to read this\n", text)
        self.assertIn("measured before", text)

    def test_the_document_has_every_way_to_pose_a_work_and_no_target_for_a_given_step(self):
        from document import write_document
        with tempfile.TemporaryDirectory() as folder:
            write_document({"works": {"W1": self.measured()}, "trained": {"W1": self.measured()}, "given": {"W1": self.measured()},
                            "shortcomings": ["no Python 3.12"]}, Path(folder))
            text = (Path(folder) / "benchmarks.md").read_text()
        self.assertIn("| W1 annuli, trained | 0.2 (fathom) | torch-expert | 10.0x |", text)
        self.assertRegex(text, r"\| W1 annuli, given step \| .* \|  \|\n")
        self.assertIn("### W1: annuli, given step\n", text)
        self.assertIn("Missing on this machine: no Python 3.12.", text)
        self.assertNotIn("Not measured at trained weights", text)

    def test_the_document_says_which_works_were_not_measured_at_trained_weights(self):
        from document import write_document
        with tempfile.TemporaryDirectory() as folder:
            write_document({"works": {"W1": self.measured(), "W6": self.measured(), "W8": self.measured()}, "trained": {"W1": self.measured()}},
                           Path(folder))
            self.assertIn("Not measured at trained weights: W6.", (Path(folder) / "benchmarks.md").read_text())

    def test_works_are_posed_in_three_ways(self):
        works = self.compare
        self.assertIsNone(works.complete(works.WORKS["W1"])["first_step"])
        self.assertEqual(works.complete(works.with_first_step("W1"))["first_step"], 0.05)
        start, trained = works.complete(works.WORKS["W2"]), works.complete(works.trained("W2"))
        self.assertEqual([each["shape"] for each in start["parameters"]], [each["shape"] for each in trained["parameters"]])
        self.assertNotEqual(start["parameters"], trained["parameters"])
        self.assertEqual((start["x"], start["y"]), (trained["x"], trained["y"]))

    def test_a_flow_is_trained_on_what_it_is_measured_on(self):
        works = self.compare
        trained_on, at_start = works.complete(works.to_train("W6")), works.complete(works.WORKS["W6"])
        self.assertNotEqual(trained_on["x"], at_start["x"])
        self.assertEqual(works.trained("W6") | {"weights": None}, works.to_train("W6") | {"weights": None})

    def test_entries_take_part_in_the_works_that_they_are_meant_for(self):
        takes_part, works = self.compare.takes_part, self.compare.WORKS
        self.assertTrue(takes_part("torchdiffeq-forward", works["W6"], thorough=True))
        self.assertFalse(takes_part("torchdiffeq-forward", works["W1"], thorough=True))
        self.assertFalse(takes_part("torchdyn-adjoint", works["W1"], thorough=False))

    def test_turns_without_a_second_core_are_left_out_and_counted(self):
        turns = [{"one": 2.0, "two": 1.0, "sharing": 1.0}] * 3 + [{"one": 2.0, "two": 2.0, "sharing": 1.9}]
        answer = self.compare.second_core_answer(turns)
        self.assertEqual((answer["ratio"], answer["turns"], answer["turns_left_out"]), (2.0, 4, 1))


class EnvironmentsTest(unittest.TestCase):
    """Which Pythons the peers are installed for."""

    def setUp(self):
        load_compare()
        import environments
        self.environments = environments
        self.addCleanup(setattr, environments, "pythons", environments.pythons)

    def have(self, *versions):
        self.environments.pythons = lambda: {version: f"python{version[1]}" for version in sorted(versions, reverse=True)}

    def test_the_newest_python_that_fits_comes_first(self):
        self.have((3, 11), (3, 13), (3, 12))
        known = self.environments.ENVIRONMENTS
        self.assertEqual(self.environments.pythons_for(known["jax-newest"]), ["python13", "python12", "python11"])
        self.assertEqual(self.environments.pythons_for(known["jax-0.4.31"]), ["python12", "python11"])
        self.assertEqual(self.environments.shortcomings(), [])

    def test_says_which_python_is_missing(self):
        self.have((3, 9))
        with self.assertRaisesRegex(RuntimeError, r"needs Python 3\.10 to 3\.12; found 3\.9"):
            self.environments.pythons_for(self.environments.ENVIRONMENTS["jax-0.4.31"])

    def test_says_what_an_older_python_costs(self):
        self.have((3, 11))
        self.assertEqual(self.environments.shortcomings(),
                         ["the newest jax was installed for Python 3.11; it is at its best from Python 3.12 on"])

    def test_is_made_anew_when_its_packages_change(self):
        with tempfile.TemporaryDirectory() as folder:
            self.environments.CACHE = Path(folder)
            self.assertFalse(self.environments.is_complete("jax-newest"))
            (Path(folder) / "jax-newest").mkdir()
            self.environments.stamp("jax-newest")
            self.assertTrue(self.environments.is_complete("jax-newest"))
            (Path(folder) / "jax-newest" / ".complete").write_text('{"made_of": ["jax==1"], "megabytes": 1}')
            self.assertFalse(self.environments.is_complete("jax-newest"))


if __name__ == "__main__":
    unittest.main()
