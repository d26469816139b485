"""What the Python peers share: `PROGRAM WORK.json ENTRY THREADS` says one JSON line when it is warm, then answers each line on its
standard input with a turn of iterations, as in training one after the other: `milliseconds evaluations loss`, where the time is
the median of the turn."""
import json
import os
import statistics
import sys
import time


def restrict_threads(threads):
    """Before any numerical library is loaded."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(threads)
    os.environ["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} intra_op_parallelism_threads={threads}"


def arguments():
    path, entry, threads = sys.argv[1:4]
    restrict_threads(int(threads))
    with open(path) as file:
        return json.load(file), entry, int(threads)


# So small that the network, and with it the number of evaluations, stays what it is, however many iterations an entry makes.
LEARNING_RATE = 1e-7
TURN_SECONDS = 0.03  # so that a short iteration is not measured on the caches that another process left


def serve(iterate, version, warm_up=3):
    """`iterate()` gives (evaluations, loss) of one iteration, finished when it returns."""
    for _ in range(warm_up):
        iterate()
    print(json.dumps({"version": version}), flush=True)
    for _ in sys.stdin:
        times = []
        while sum(times) < TURN_SECONDS:
            began = time.perf_counter()
            evaluations, loss = iterate()
            times.append(time.perf_counter() - began)
        print(statistics.median(times) * 1e3, evaluations, loss, flush=True)
