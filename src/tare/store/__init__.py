"""Storage of a campaign: every write is complete and on disk before the next write starts."""

from typing import TYPE_CHECKING

from tare import lazily

if TYPE_CHECKING:
    from tare.store.durations import block_durations, with_turns, workload_seconds
    from tare.store.limits import OUTPUT_CAP
    from tare.store.opening import (
        create_store,
        exists,
        file_of,
        kept_in,
        open_store,
        read_store,
        require_file_of,
        share_store,
    )
    from tare.store.packed import Output
    from tare.store.places import MAX_LOG_BYTES, log_of
    from tare.store.possible import unreadable
    from tare.store.protocol import Event, Store, Telemetry
    from tare.store.reading import known_part
    from tare.store.record import (
        CampaignRecord,
        ClientRecord,
        LeftOut,
        LevelRecord,
        MetricRecord,
        PlatformRecord,
        ProgramRecord,
        ResourceRecord,
        SettingRecord,
        WorkloadRecord,
    )
    from tare.store.segments import RESUMED, Segment

__all__ = [
    "MAX_LOG_BYTES",
    "OUTPUT_CAP",
    "RESUMED",
    "CampaignRecord",
    "ClientRecord",
    "Event",
    "LeftOut",
    "LevelRecord",
    "MetricRecord",
    "Output",
    "PlatformRecord",
    "ProgramRecord",
    "ResourceRecord",
    "Segment",
    "SettingRecord",
    "Store",
    "Telemetry",
    "WorkloadRecord",
    "block_durations",
    "create_store",
    "exists",
    "file_of",
    "kept_in",
    "known_part",
    "log_of",
    "open_store",
    "read_store",
    "require_file_of",
    "share_store",
    "unreadable",
    "with_turns",
    "workload_seconds",
]

_MODULES = {
    "durations": ("block_durations", "with_turns", "workload_seconds"),
    "limits": ("OUTPUT_CAP",),
    "opening": (
        "create_store",
        "exists",
        "file_of",
        "kept_in",
        "open_store",
        "read_store",
        "require_file_of",
        "share_store",
    ),
    "packed": ("Output",),
    "places": ("MAX_LOG_BYTES", "log_of"),
    "possible": ("unreadable",),
    "reading": ("known_part",),
    "record": (
        "CampaignRecord",
        "ClientRecord",
        "LeftOut",
        "LevelRecord",
        "MetricRecord",
        "PlatformRecord",
        "ProgramRecord",
        "ResourceRecord",
        "SettingRecord",
        "WorkloadRecord",
    ),
    "segments": ("RESUMED", "Segment"),
    "protocol": ("Event", "Store", "Telemetry"),
}
__getattr__ = lazily.exports(__name__, {name: module for module, names in _MODULES.items() for name in names})
