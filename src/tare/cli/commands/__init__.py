"""The options of each command: importing these modules is quick.

A command checks its options and output files, and then imports the module in `tare.cli` that does the work.
"""
