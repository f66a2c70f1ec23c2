"""`python -m tare` is `tare`."""

from tare.cli import main

main()
