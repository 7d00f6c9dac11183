"""Jobs: how far a release is, how it ended, and whether it was paid for."""

from __future__ import annotations

from starlette.responses import Response

from spinney.studio.jobs import UNFINISHED, paid
from spinney.studio.pages import Call, Pages
from spinney.studio.streams import told_until

pages = Pages()


@pages.get("/jobs/{key}")
def show(call: Call) -> Response:
    """A job as it stands."""
    job = call.studio.jobs.get(call.path["key"])
    going_on = job["state"] in UNFINISHED
    return call.page(
        "job.html",
        title=f"Release {job['name']}",
        job=job,
        going_on=going_on,
        progress=call.studio.jobs.progress(job["key"]) if going_on else {},
        is_stopping=going_on and call.studio.jobs.is_stopping(job["key"]),
        paid=paid(call.workspace, job),
    )


@pages.get("/jobs/{key}/events")
async def events(call: Call) -> Response:
    """How far a job is, as it goes on."""
    jobs, key = call.studio.jobs, call.path["key"]

    def look() -> dict[str, object]:
        job = jobs.get(key)
        return {**jobs.progress(key), "state": job["state"], "said": paid(call.workspace, job).sentence}

    return told_until(call.request, look, set(UNFINISHED))


@pages.post("/jobs/{key}/cancel")
def cancel(call: Call) -> Response:
    """Ask a job to stop; its page then says whether it had been charged."""
    call.studio.jobs.cancel(call.path["key"])
    return call.redirect(f"/jobs/{call.path['key']}")


@pages.post("/jobs/{key}/again")
def again(call: Call) -> Response:
    """A new draft that says what the draft of this job said; nothing is spent before it is confirmed anew."""
    draft = call.workspace.draft(call.path["key"])
    kept = {name: draft[name] for name in ("name", "table", "fields", "schema", "folder", "budget", "is_demo")}
    fresh = call.workspace.new_draft(**kept, revision=2)
    return call.redirect(f"/drafts/{fresh['key']}/schema")
