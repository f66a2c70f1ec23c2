"""The image that `scripts/test` builds for the host tests of applications: all layers, as no archive is reached."""

import runpy
from pathlib import Path

from tare.workloads import workload_registry
from workloads.test_host_applications import TINY

SCRIPT = Path(__file__).parents[2] / "scripts" / "image_of_applications.py"


def _layers(names):
    return {layer.name for name in names if (layer := workload_registry.get(name).layer) is not None}


def test_it_has_the_layers_of_the_workloads_that_are_run():
    assert _layers(runpy.run_path(str(SCRIPT))["WORKLOADS"]) == _layers(TINY)
