"""PUBLIC: what the studio shows of a release: its columns, pairs, answers, rows and report. No table is looked at.

Everything is worked out from a release file, by functions of plain values that run in a process beside the server
(`beside`), and is kept there and here by the digest of the file. Pages (`*_pages`) show it.
"""
