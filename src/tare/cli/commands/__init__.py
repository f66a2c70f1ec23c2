"""What each command is asked, as the command line has it: nothing here takes long to load.

A command checks what it was given and what it will write, and then loads the module beside this package that does it.
"""
