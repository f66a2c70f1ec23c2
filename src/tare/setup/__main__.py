"""`tare setup` with Python's own library alone, for a clone that has no other library yet.

``python3 -m tare.setup packages [COMPONENT]...`` installs packages, ``python3 -m tare.setup gvisor`` builds gVisor,
``python3 -m tare.setup cluster`` builds the programs of a Kubernetes cluster.
"""

import sys

from tare.errors import TareError
from tare.safe_text import say
from tare.setup import gvisor_build, kubernetes_build
from tare.setup.carry_out import set_up


def main(step: str, *components: str) -> int:
    """Run one step, with progress on standard error."""

    def tell(line: str) -> None:
        say(f"{step}: {line}", error=True)

    try:
        if step == "gvisor":
            gvisor_build.build(tell)
        elif step == "cluster":
            kubernetes_build.build_cluster(tell)
        else:
            set_up(",".join(components), dry_run=False, tell=tell, build=False)
    except TareError as error:
        tell(str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
