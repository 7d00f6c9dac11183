"""A tiny experiment for tests of the framework and the command."""

from __future__ import annotations

import numpy as np

from spinney_paper.experiments.framework import Experiment


def toy(ran: list | None = None, *, stop_at: int | None = None, needs_fraud: bool = False, n: int = 4) -> Experiment:
    """An experiment of a few tasks that notes which of them ran, and is interrupted at one of them."""

    def run(params, task, inputs):
        if task["step"] == stop_at:
            raise KeyboardInterrupt
        if ran is not None:
            ran.append(task["step"])
        return {"value": np.random.default_rng(task["seed"]).random() + params["shift"]}

    return Experiment(
        id="toy",
        title="A toy",
        paper_says="Nothing.",
        full={"shift": 0, "steps": n, "pair": (1, 2)},
        quick={"shift": 0, "steps": 1, "pair": (1, 2)},
        tasks=lambda params: [{"step": step} for step in range(params["steps"])],
        run=run,
        draw=lambda results: None,
        table=lambda results: "| |",
        verdict=lambda results: "So.",
        needs_fraud=needs_fraud,
    )
