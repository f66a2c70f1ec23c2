"""The counter's frequency, held against what the kernel found."""

import re

import pytest

from tare.host import processes
from tare.host.facts import tsc


def test_it_is_what_the_hosts_kernel_found():
    measured = tsc.khz()
    assert 500_000 < measured < 10_000_000
    frequencies = re.findall(
        r"tsc: (?:Detected|Refined TSC clocksource calibration:) ([0-9.]+) MHz", processes.run(["dmesg"]).text
    )
    if frequencies:
        assert measured == pytest.approx(float(frequencies[-1]) * 1000, rel=1e-3)


def test_it_is_measured_once():
    assert tsc.khz() is tsc.khz()
