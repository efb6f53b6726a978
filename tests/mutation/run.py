#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs the tests with mutants of the sources, and lists those that no test finds.

    tests/mutation/run.py [--mutants N] [--layer NAME] [--seconds S] [--jobs N] [--json FILE] [--again FILE]

Mutants are chosen at random, as many of each layer. The choice of a mutant depends on its file and text alone, so that
a change elsewhere does not make another sample. All tests run once without a mutant, and say which places they reach.
Then each mutant runs the tests that reach its place until one fails, the shortest first and those that killed others of
the file: the mutant is *killed*. It *survives* if all pass, or those that fit into S seconds. A survivor is a statement
that is not tested, one that has no effect, or one that only saves time; look at each.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
BUILD = SOURCE / "build" / "mutation"
# Tests of other layers, and those that measure, read documents, or run the same code with another library.
LEFT_OUT = (r"^(check|cli|docs|gpu|install|models|mpi|operators|samples|stress|fault/tool|unit/(base|device|fake_cuda|"
            r"graph|render|tensor|tool|vendor))/|-(adopted|ptx|cblas|onednn|avx2|serial)|workers")
MEMORY = 6 << 30  # that a test may take: a mutant may allocate without an end
OPTIONS = ("--log-level=WARNING", "-DRONDO_COMPONENTS=tensor;session;mpi", "-DRONDO_BUILD_TOOL=OFF",
           "-DRONDO_BUILD_BENCH=OFF", "-DRONDO_BUILD_EXAMPLES=OFF", f"-DRONDO_TEST_EXCLUDE={LEFT_OUT}",
           "-DRONDO_WERROR=OFF")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mutants", type=int, default=500,
                        help="how many (default %(default)s), as many of each layer")
    parser.add_argument("--layer", help="of one layer of src/ only")
    parser.add_argument("--seconds", type=float, default=120, help="of tests for each (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at once (default %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, default=BUILD / "mutants.json",
                        help="results (default %(default)s)")
    parser.add_argument("--again", type=pathlib.Path, help="the survivors of these results only")
    parser.add_argument("--built", action="store_true", help="with what the last run built and measured")
    return parser.parse_args()


def call(*words, **more):
    subprocess.run([str(word) for word in words], check=True, **more)


def build():
    """Builds all mutants at once, in BUILD/tree. Warnings are those of the macros, so they are off."""
    plain, tree = BUILD / "plain", BUILD / "source"
    call("cmake", "--preset", "dev", "-B", plain, *OPTIONS, cwd=SOURCE)
    shutil.rmtree(tree, ignore_errors=True)
    call(sys.executable, HERE / "mutate.py", plain / "compile_commands.json", SOURCE, tree)
    mutants = json.loads((tree / "mutants.json").read_text())
    library = BUILD / "librondo_mutation_points.so"
    call("cc", "-O1", "-fPIC", "-shared", f"-DRONDO_MUTANTS={len(mutants)}", HERE / "mutation_points.c", "-o", library)
    with_mutants = f"{library} -Wl,-rpath,{BUILD}"
    call("cmake", "--preset", "dev", "-B", BUILD / "tree", *OPTIONS, "-DCMAKE_C_FLAGS=-w", "-DCMAKE_CXX_FLAGS=-w",
         f"-DCMAKE_C_STANDARD_LIBRARIES={with_mutants}", f"-DCMAKE_CXX_STANDARD_LIBRARIES={with_mutants}", cwd=tree)
    call("cmake", "--build", BUILD / "tree", "-j", os.cpu_count(), "--", "--quiet")
    return mutants


class Test:
    def __init__(self, entry):
        self.name, self.command = entry["name"], entry["command"]
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        self.folder = properties.get("WORKING_DIRECTORY", str(BUILD))
        self.environment = dict(each.split("=", 1) for each in properties.get("ENVIRONMENT", []))
        self.seconds = 0.0  # that it takes without a mutant
        self.skip_code = properties.get("SKIP_RETURN_CODE", 77)

    def run(self, more, timeout):
        """Returns whether the test passes; None: it was skipped. A test that takes too long fails."""
        process = subprocess.Popen(self.command, cwd=self.folder, env=os.environ | self.environment | more,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            code = -9
        return None if code == self.skip_code else code == 0


def list_tests():
    listing = subprocess.run(["ctest", "--show-only=json-v1"], cwd=BUILD / "tree",
                             check=True, capture_output=True, text=True).stdout
    return [Test(each) for each in json.loads(listing)["tests"] if "command" in each]


def run_unchanged(test, folder):
    """Runs a test without a mutant. Leaves the places that it reaches in a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = time.monotonic()
    passed = test.run({"RONDO_MUTANT_REACHED": str(folder)}, 600)
    places = set()
    for path in folder.iterdir():
        places.update(number for number, byte in enumerate(path.read_bytes()) if byte)
        path.unlink()
    result = {"passed": passed, "seconds": time.monotonic() - started, "places": sorted(places)}
    (folder / "result.json").write_text(json.dumps(result))


def find_reached(tests, jobs, are_measured):
    """Runs each test as it is. Returns, by mutant, the tests that reach its place."""
    folders = [BUILD / "reached" / test.name.replace("/", "_") for test in tests]
    missing = [(test, folder) for test, folder in zip(tests, folders)
               if not are_measured or not (folder / "result.json").exists()]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda pair: run_unchanged(*pair), missing))
    reached = collections.defaultdict(list)
    for test, folder in zip(tests, folders):
        result = json.loads((folder / "result.json").read_text())
        test.seconds = result["seconds"]
        if result["passed"] is False:
            print(f"left out, because it fails without a mutant: {test.name}", flush=True)
        for number in result["places"] if result["passed"] else ():
            reached[number].append(test)
    return reached


def try_mutant(number, tests, seconds):
    """Returns the name of the test that kills a mutant, or None, and how many ran."""
    left = seconds
    for count, test in enumerate(tests):
        if left <= 0:
            return None, count
        started = time.monotonic()
        if test.run({"RONDO_MUTANT": str(number)}, 10 + 5 * test.seconds) is False:
            return test.name, count + 1
        left -= time.monotonic() - started
    return None, len(tests)


def name_mutants(mutants):
    """Gives each mutant a name that stays while its file has the same texts before it."""
    seen = collections.Counter()
    for number, mutant in enumerate(mutants):
        text = f'{mutant["file"]} {mutant["kind"]} {mutant["text"]}'
        seen[text] += 1
        mutant |= {"number": number, "name": f"{text} {seen[text]}"}


def choose(mutants, options):
    if options.again is not None:
        names = {each["name"] for each in json.loads(options.again.read_text()) if each["killed_by"] is None}
        return [each for each in mutants if each["name"] in names and options.layer in (None, each["layer"])]
    layers = sorted({each["layer"] for each in mutants} if options.layer is None else {options.layer})
    chosen = []
    for layer in layers:
        own = [each for each in mutants if each["layer"] == layer]
        own.sort(key=lambda each: hashlib.sha256(each["name"].encode()).digest())
        chosen += own[: -(-options.mutants // len(layers))]
    return chosen


def print_survivor(mutant):
    text = " ".join(mutant["text"].split())[:100]
    print(f'survived {mutant["tests"]} of {mutant["reached_by"]} tests: {mutant["file"]}:{mutant["line"]}: '
          f'{mutant["kind"]} {text}', flush=True)


def print_summary(results):
    layers = sorted({each["layer"] for each in results})
    for title in layers + ["all"]:
        own = [each for each in results if title in (each["layer"], "all")]
        killed = sum(each["killed_by"] is not None for each in own)
        print(f"{title:8} {killed:4} of {len(own):4} killed, {100 * killed / max(len(own), 1):.1f} %")


def main():
    options = arguments()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    mutants = json.loads((BUILD / "source" / "mutants.json").read_text()) if options.built else build()
    name_mutants(mutants)
    reached = find_reached(list_tests(), options.jobs, options.built)
    results = []
    kills = collections.Counter()

    def run(mutant):
        def cost(test):
            return test.seconds / (1 + 5 * kills[mutant["file"], test.name])

        tests = sorted(reached[mutant["number"]], key=cost)
        killer, ran = try_mutant(mutant["number"], tests, options.seconds)
        kills[mutant["file"], killer] += 1
        return mutant | {"killed_by": killer, "tests": ran, "reached_by": len(tests)}

    # By the hash, so that what has run at any time is of all layers.
    chosen = sorted(choose(mutants, options), key=lambda each: hashlib.sha256(each["name"].encode()).digest())
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, mutant) for mutant in chosen]):
            result = future.result()
            results.append(result)
            options.json.write_text(json.dumps(results, indent=1))
            if result["killed_by"] is None:
                print_survivor(result)
    print_summary(results)


if __name__ == "__main__":
    main()
