"""Fuzzing with a time budget: `make fuzz`, or `PYTHONPATH=tests python -m fuzz [TARGET ...] --seconds 600`.

Every target runs in a process of its own, guided by coverage (atheris) where that is installed and by chance where it
is not. The process may take three gigabytes, and ten seconds for one input. What it dies of is a finding: the input is
kept, the process starts anew, and the run fails in the end. Inputs that reach new code are kept in a folder if one is
named, to be put into `corpus/`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
NAMES = ("release", "ledger", "schema", "csv", "condition")
MOST_SECONDS_AN_INPUT = 10
MOST_MEGABYTES = 3072
_MOST_FINDINGS = 20
_LONGEST_INPUT = 200_000


@dataclass
class Outcome:
    """What came of one target."""

    name: str
    n_inputs: int = 0
    findings: list[str] = field(default_factory=list)


def main() -> int:
    """Run the fuzzer; returns the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--seconds", type=int, default=120, help="for each target (default: 120)")
    parser.add_argument("--jobs", type=int, default=2, help="targets at once (default: 2)")
    parser.add_argument("--keep", type=Path, help="a folder for inputs that reach new code, and for findings")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return run_child(given.child, given.work, given.seconds, given.seed)
    unknown = sorted(set(given.targets) - set(NAMES))
    if unknown:
        parser.error(f"{unknown[0]!r} is not one of {', '.join(NAMES)}")
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(given.jobs) as pool:
        folder = given.keep or Path(scratch)
        runs = [pool.submit(run_target, name, folder / name, given.seconds) for name in given.targets or NAMES]
        outcomes = [run.result() for run in runs]
    for outcome in outcomes:
        print(f"{outcome.name:<10} {outcome.n_inputs:>10,} inputs, {len(outcome.findings)} findings")
        for finding in outcome.findings:
            print(f"    {finding}")
    print(f"{'all':<10} {sum(outcome.n_inputs for outcome in outcomes):>10,} inputs")
    return 1 if any(outcome.findings for outcome in outcomes) else 0


def run_target(name: str, folder: Path, seconds: int) -> Outcome:
    """Have child after child work on a target until the time is over."""
    outcome = Outcome(name)
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + seconds
    seed = time.time_ns() % 2**31
    while (left := int(deadline - time.monotonic())) > 5 and len(outcome.findings) < _MOST_FINDINGS:
        seed += 1
        command = [sys.executable, "-m", "fuzz", "--child", name, "--work", str(folder), "--seconds", str(left)]
        child = subprocess.run(
            [*command, "--seed", str(seed)], capture_output=True, text=True, errors="replace", check=False
        )
        text = child.stdout + child.stderr
        counted = re.findall(r"number_of_executed_units: (\d+)", text) or re.findall(r"^#(\d+)\s", text, re.MULTILINE)
        outcome.n_inputs += int(counted[-1]) if counted else 0
        if child.returncode:
            kept = re.findall(r"Test unit written to (\S+)", text)
            reason = [
                line for line in text.splitlines() if re.match(r"(\w+\.)*\w*(Error|Exception|Warning)\b|==\d+==", line)
            ]
            outcome.findings.append(f"{reason[0] if reason else f'status {child.returncode}'} [{' '.join(kept)}]")
    return outcome


def run_child(name: str, folder: Path, seconds: int, seed: int) -> int:
    """Fuzz one target in this process."""
    try:
        import atheris
    except ImportError:
        return run_blindly(name, folder, seconds, seed)
    with atheris.instrument_imports(include=["spinney", "tomllib"], exclude=compiled_modules()):
        from fuzz.targets import TARGETS

    from random import Random

    target = TARGETS[name]
    for name_of_folder in ("seeds", "new", "found"):
        (folder / name_of_folder).mkdir(exist_ok=True)
    for place, data in enumerate(target.seeds()):
        (folder / "seeds" / str(place)).write_bytes(data)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        mutated = target.mutate(data, Random(number), lambda old: atheris.Mutate(old[:most], most))
        return mutated[:most]

    options = {
        "max_total_time": seconds,
        "timeout": MOST_SECONDS_AN_INPUT,
        "rss_limit_mb": MOST_MEGABYTES,
        "max_len": _LONGEST_INPUT,
        "print_final_stats": 1,
        "seed": seed,
        "artifact_prefix": f"{folder}/found/",
    }
    seeds = [str(folder / "new"), str(folder / "seeds"), *([str(CORPUS / name)] if (CORPUS / name).is_dir() else [])]
    arguments = [sys.argv[0], *(f"-{option}={value}" for option, value in options.items()), *seeds]
    atheris.Setup(arguments, target.check, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


def compiled_modules() -> list[str]:
    """Modules with compiled loops, which cannot be watched for new paths."""
    home = Path(importlib.util.find_spec("spinney").origin).parent  # type: ignore[union-attr,arg-type]
    sources = [path for path in home.rglob("*.py") if "@compiled" in path.read_text()]
    return [".".join(("spinney", *path.relative_to(home).with_suffix("").parts)) for path in sources]


def run_blindly(name: str, folder: Path, seconds: int, seed: int) -> int:
    """Without coverage: mutations of mutations of the seeds, in the order of chance."""
    import faulthandler
    from random import Random

    from fuzz.targets import TARGETS, mutated

    target, rng = TARGETS[name], Random(seed)
    inputs = [*target.seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]
    deadline, n_inputs = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        data = mutated(target, rng.choice(inputs), rng)[:_LONGEST_INPUT]
        last = folder / f"last-{seed}"
        last.write_bytes(data)
        faulthandler.dump_traceback_later(MOST_SECONDS_AN_INPUT, exit=True)
        n_inputs += 1
        try:
            if target.check(data):
                inputs.append(data)
        except BaseException:
            print(f"number_of_executed_units: {n_inputs}\nTest unit written to {last}", flush=True)
            raise
        finally:
            faulthandler.cancel_dump_traceback_later()
    print(f"number_of_executed_units: {n_inputs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
