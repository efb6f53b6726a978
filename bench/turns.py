# SPDX-License-Identifier: MIT
"""Processes that take turns: each measures some steps while the others wait (rondo_bench NAME --turns)."""
import json
import os
import statistics
import subprocess


class Runner:
    """A process that prints "ready", and answers a line with a number of steps with their times in microseconds. At the
    end of its input it prints a JSON object. It runs on the given processors; `errors` is a file for what it says."""

    def __init__(self, way, command, processors, errors, environment=None):
        self.way, self.turns, self.steps = way, [], []
        self.errors = open(errors, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env={**os.environ, **(environment or {})}, preexec_fn=lambda: os.sched_setaffinity(0, processors))

    def is_ready(self):
        return self.process.stdout.readline().strip() == "ready"

    def take_turn(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        times = [float(time) for time in self.process.stdout.readline().split()]
        return times or [float("nan")]

    def measure(self, steps):
        times = self.take_turn(steps)
        self.steps += times
        self.turns.append(statistics.median(times))

    def end(self):
        out, _ = self.process.communicate()
        return json.loads(out) if self.process.returncode == 0 else {}

    def failure(self):
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.returncode}"


def measure_in_turns(runners, rounds, seconds):
    """Turns of as many steps as fit into `seconds`, in an order that rotates. Returns the number of steps."""
    slowest = max(statistics.median(runner.take_turn(2)) for runner in runners)
    steps = max(1, min(1000, round(seconds * 1e6 / slowest)))
    for turn in range(rounds):
        for i in range(len(runners)):
            runners[(turn + i) % len(runners)].measure(steps)
    return steps


def first_processors(count):
    return sorted(os.sched_getaffinity(0))[:count]
