"""What runs where anonymeter is: attacks on tables that come through standard input, and rates that go out as JSON.

A script for another Python, which need not have Spinney: it imports nothing of ours. Standard input holds a line of
JSON and three tables as Arrow streams, each after its length: rows that were fitted, synthetic rows, control rows.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import suppress
from typing import Any


def main() -> None:
    """Attack what standard input holds."""
    import pyarrow as pa
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    warnings.simplefilter("ignore")
    source = sys.stdin.buffer
    asked = json.loads(source.readline())
    frames = []
    for _ in range(3):
        content = source.read(int.from_bytes(source.read(8), "big"))
        frames.append(pa.ipc.open_stream(content).read_all().to_pandas())
    inside, rows, outside = frames
    names, n = asked["names"], asked["n_attacks"]
    half = len(names) // 2
    common = {"ori": inside, "syn": rows, "control": outside, "n_attacks": n}

    def outcome(name: str, evaluator: Any) -> dict[str, Any]:
        found = evaluator.results(confidence_level=0.95)
        return {
            "name": name,
            "n": int(min(found.n_attacks_ori, found.n_attacks_control)),
            "rate": found.n_success / found.n_attacks_ori,
            "control_rate": found.n_control / found.n_attacks_control,
        }

    said = []
    singling = SinglingOutEvaluator(**common, n_cols=min(3, len(names)), seed=asked["seed"])
    with suppress(RuntimeError):  # where no condition that singles out one synthetic row is found
        said.append(outcome("singling out", singling.evaluate(mode="multivariate" if len(names) > 1 else "univariate")))
    if half:
        linkage = LinkabilityEvaluator(**common, aux_cols=(names[:half], names[half:]), n_neighbors=5)
        said.append(outcome("linkage", linkage.evaluate(n_jobs=1)))
        for secret in names[:2]:
            known = [name for name in names if name != secret]
            is_number = str(inside[secret].dtype).startswith(("int", "float"))
            inference = InferenceEvaluator(**common, aux_cols=known, secret=secret, regression=is_number)
            said.append(outcome(f"inference of {secret}", inference.evaluate(n_jobs=1)))
    print(json.dumps(said))  # noqa: T201


if __name__ == "__main__":
    main()
