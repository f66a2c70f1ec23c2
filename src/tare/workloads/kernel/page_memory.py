"""Memory from the kernel by the page: mapped and unmapped, with and without a write, and the page fault alone.

`mem-fault` maps 256 pages once and gives them back by one madvise when all were touched; the share of that call is in
its figure. Pages are 4 KiB: huge ones are refused where a kernel would give them.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("mem-map", "mmap and munmap of a page that is not used", "map"),
    unit_cost("mem-map-touch", "mmap of a page, a word written, munmap", "map-touch"),
    unit_cost("mem-fault", "the first write to a page that is mapped", "fault", "fault"),
)
