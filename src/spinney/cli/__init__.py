"""The `spinney` command: thin verbs over the library."""
