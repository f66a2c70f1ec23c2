"""In a lab, whose KVM runs guests: stacks of gVisor on KVM beside native; prints the footprints as JSON.

The argument is the compiled BPF program: a lab has no clang.
"""

import sys
from pathlib import Path

from tare import cli
from tare.features.kernel.reading import bpf

program = Path(sys.argv[1]).read_bytes()
bpf.compiled = lambda source: program
arguments = "--level stacks -p gvisor-kvm -w primes --repeats 1 --idle 1s --json -o /tmp/stacks.tare"
sys.argv = ["tare", "footprint", *arguments.split()]
cli.main()
