"""The campaign's file: SQLite, one a campaign; every trial is on disk before the next begins."""

from tare.store.frames import Telemetry
from tare.store.limits import OUTPUT_CAP
from tare.store.packed import Output
from tare.store.record import (
    CampaignRecord,
    LeftOut,
    MetricRecord,
    PlatformRecord,
    ResourceRecord,
    SettingRecord,
    WorkloadRecord,
)
from tare.store.segments import Segment
from tare.store.store import Event, Store

__all__ = [
    "OUTPUT_CAP",
    "CampaignRecord",
    "Event",
    "LeftOut",
    "MetricRecord",
    "Output",
    "PlatformRecord",
    "ResourceRecord",
    "Segment",
    "SettingRecord",
    "Store",
    "Telemetry",
    "WorkloadRecord",
]
