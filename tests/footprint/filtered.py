"""A program that installs the filters it is given, oldest first, as hex; says "ready"; then echoes what it is told.

It answers a line of its input with how many SIGUSR1 came so far, and has three threads besides.
"""

import signal
import sys
import threading
import time

from kernel_oracle import install

signals = []
signal.signal(signal.SIGUSR1, lambda number, _: signals.append(number))
for packed in sys.argv[1:]:
    install(bytes.fromhex(packed))
for _ in range(3):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
while sys.stdin.readline():
    print(len(signals), flush=True)
