"""The studio: a web application on this machine, in which a table is described, paid for and released.

A browser talks to a server that only this machine can reach. `server` puts together what `security` guards and
the pages show; `workspace` stores drafts, jobs and releases as files, so that a server that is killed loses
nothing; a job runs in a process of its own (`jobs`). No page shows a row of the table: before the release there
are names and types alone.
"""
