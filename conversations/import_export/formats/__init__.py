"""One module per file format. A new one is a module here: `detect_format` finds it and the command names it; add its
name to the guide.

It has a `NAME`, what it `READS` (see `detect_format.Shape`), `fits(sample)` and `read(source, report)`;
`detect_format.Format` says what each is given. One that claims what any other might claim too says `IS_GENERAL = True`,
and is tried last. A module of several formats has the objects that say all this in `SESSIONS`.
"""
