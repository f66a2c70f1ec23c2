"""A ReFrame test: what a platform costs on this system, held to a reference that each site writes for its partitions.

reframe -c docs/examples/hpc/reframe_tare.py -r -S TareOverhead.platform=charliecloud
"""

import json
from pathlib import Path

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, performance_function, run_after, sanity_function, variable


@rfm.simple_test
class TareOverhead(rfm.RunOnlyRegressionTest):
    descr = "the cost of a container runtime against bare metal, by tare"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    workload = parameter(["primes", "startup"])
    platform = variable(str, value="runc")
    length = variable(str, value="--time 10m")
    time_limit = "30m"
    exclusive_access = True
    executable = "tare"
    # In a subclass: reference = {"system:partition": {"overhead": (1.02, None, 0.05, "x")}}

    @run_after("init")
    def set_options(self):
        measured = ["-p", self.platform, "-w", self.workload, *self.length.split()]
        self.executable_opts = ["run", *measured, "-o", "campaign.tare", "--json"]

    @sanity_function
    def assert_ratio(self):
        return sn.assert_gt(self._ratio(), 0)

    @performance_function("x")
    def overhead(self):
        return self._ratio()

    @sn.deferrable
    def _ratio(self):
        """The platform's time by native's, of the workload's headline."""
        report = json.loads(Path(self.stagedir, sn.evaluate(self.stdout)).read_text())
        for result in report["results"]:
            if result["workload"] == self.workload and result["headline"]:
                return next((row["ratio"] for row in result["platforms"] if row["platform"] == self.platform), None)
        return None
