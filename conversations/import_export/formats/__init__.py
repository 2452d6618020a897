"""One module per file format. A new one is a module here: `detect` finds it, the command and the guide name it.

It has a `NAME`, what it `READS` (see `detect.Shape`), `fits(sample)` and `read(source, trouble)`; `detect.Format` says
what each is given. One that claims what any other might claim too says `IS_GENERAL = True`, and is asked last.
"""
