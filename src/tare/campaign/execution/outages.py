"""Platforms whose instances no longer start in the middle of a campaign: each is tried anew, and then left out.

A daemon that was restarted is back within seconds, and the next start goes well. One whose bridge or disk has gone
would else cost a failed trial for each that is planned.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import partial

from tare.campaign.execution.faults import Faults
from tare.campaign.instances.launcher import InstanceLauncher
from tare.errors import DiskFullError, Failed, PlatformError, attempt
from tare.model import Arm, Progress
from tare.platforms import platform_contract
from tare.platforms.base import Platform
from tare.timeouts import until

#: Number of consecutive failures to start, of the same kind, after which the platform is tried anew.
ALIKE = 2
#: Time for a platform to come back, as a daemon does that its init system restarts; and time between two looks.
RECOVERY_S, LOOK_S = 15.0, 1.0
#: Parts in which two messages about the same differ: names of instances, addresses, ports, sizes.
_PARTICULAR = re.compile(r"\w*\d[\w.:]*")


@dataclass(slots=True)
class Outages:
    """The failures to start so far, by platform. ``left_out``: the sentence on each that takes no part any more."""

    faults: Faults
    launcher: InstanceLauncher
    doing: Progress
    left_out: dict[str, PlatformError] = field(default_factory=dict)
    disk_full: bool = False  # whether an instance has not started for that
    _alike: dict[str, list[str]] = field(default_factory=dict)  # reasons of the failures since the last good start

    def require(self, platform: Platform) -> None:
        """Raise `PlatformError` for a platform that is left out."""
        error = self.left_out.get(platform.name)
        if error is not None:
            raise PlatformError(error.what, fix=error.fix)

    def started(self, platform: Platform) -> None:
        """Note that an instance of it has started."""
        self._alike.pop(platform.name, None)

    def failed(self, platform: Platform, failed: Failed) -> None:
        """Note that an instance did not start. After two alike the platform is tried anew; then it is left out.

        Never the baseline, without which there is nothing to compare with; and a full disk is no platform's.
        """
        if isinstance(failed.error, DiskFullError):
            self.disk_full = True
            return
        if platform.baseline or platform.name in self.left_out:
            return
        reason = _PARTICULAR.sub("#", failed.reason)
        alike = self._alike.setdefault(platform.name, [])
        if alike and alike[-1] != reason and len(alike) < ALIKE:
            alike.clear()
        alike.append(reason)
        if len(alike) == ALIKE:
            self.doing(f"trying {platform.name} anew")
            why = self._tried_anew(platform)
        else:
            why = failed if len(alike) > ALIKE else None  # it failed again after it was found to be well
        if why is not None:
            self._leave_out(platform, why)

    def _tried_anew(self, platform: Platform) -> Failed | None:
        """Detect, prepare and start it until that goes well; why it does not, after some seconds."""
        deadline = until(RECOVERY_S)
        while True:
            tried = attempt(partial(_try, platform, self.launcher))
            if not isinstance(tried, Failed) or time.monotonic() > deadline:
                return tried
            time.sleep(LOOK_S)

    def _leave_out(self, platform: Platform, why: Failed) -> None:
        fix = why.error.fix if isinstance(why.error, PlatformError) else None
        message = f"{platform.name} is left out from here on: it does not start any more"
        reason = why.error.what if isinstance(why.error, PlatformError) else why.reason
        self.left_out[platform.name] = PlatformError(f"{message}: {reason}", fix=fix)
        self.faults.leave_out(str(self.left_out[platform.name]))


def _try(platform: Platform, launcher: InstanceLauncher) -> None:
    answer = platform_contract.detected(platform)
    if not answer.available:
        raise PlatformError(answer.reason, fix=answer.fix or None)
    platform_contract.prepared(platform, launcher.image)  # what it had made may have gone too
    # A daemon answers also where its containers find no bridge any more: only a start shows that.
    launcher.start(platform, Arm(platform.name), measured=False).stop()
