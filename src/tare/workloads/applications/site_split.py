"""The site of `site` as three instances of one platform: MariaDB, memcached, and nginx with PHP.

That is how it is deployed where cache and database are services of their own. What it costs beside `site`, on the same
platform, is the way between the instances: PHP asks cache and database by TCP over the platform's own network. PHP
itself stays beside nginx: it runs what it is told, and in the baseline's instances, which share the host's network, any
user of the host could tell it.

All instances share the campaign's CPUs, and each has its memory limit; pages, settings, data and users are `site`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError
from tare.model import Family
from tare.workloads.apart import SplitWorkload
from tare.workloads.applications import load_levels, serving, web_site
from tare.workloads.base import CurveLevel, Params, RunPlan, Surroundings


class SiteSplit(SplitWorkload):
    """Parameters: those of `site`."""

    name = "site-split"
    title = "the site as three instances (MariaDB; memcached; nginx and PHP) under 20 users"
    family = Family.APPLICATION
    inner = web_site.WebSite()
    metrics = inner.metrics
    work_unit = inner.work_unit
    packages = inner.packages
    layer = inner.layer
    parts = ("database", "cache", "web and application server")
    profiles: ClassVar[Mapping[str, Params]] = inner.profiles
    least = inner.least

    def plans(self, params: Params, around: Sequence[Surroundings]) -> Sequence[RunPlan]:
        of_database, of_cache, of_web = around
        database, cache, web = (serving.place(self.name, surroundings) for surroundings in around)
        limit_s = web_site.servers_limit_s(params)
        mariadb = web_site.database(of_database, f"--port={database.inside}", f"--bind-address={database.listen}")
        memcached = web_site.memcached(of_cache, "-l", cache.listen, "-p", str(cache.inside))
        by_tcp = f"host={_peer(of_database)};port={database.inside}", f"{_peer(of_cache)}:{cache.inside}"
        return (
            RunPlan(
                measures=(),
                prepare=(web_site.seeded(params, of_database),),
                servers=(serving.server(mariadb, database, time_limit_s=limit_s),),
            ),
            RunPlan(measures=(), servers=(serving.server(memcached, cache, time_limit_s=limit_s),)),
            RunPlan(
                prepare=(web_site.pages(web, of_web, *by_tcp),),
                servers=web_site.web(web, limit_s=limit_s),
                measures=(web_site.load(params, web),),
            ),
        )


def _peer(around: Surroundings) -> str:
    """Return where the others reach an instance. Raises `HostError` where they do not."""
    if around.among is None:
        raise HostError(
            "the site's instances cannot reach each other: on this platform they have no addresses of their own",
            fix="leave out site-split on this platform",
        )
    return around.among


_CURVE = CurveLevel("site-split-users", 0, "users", "successes", "p99", 500.0)
WORKLOADS = (
    SiteSplit(),
    *load_levels.levels(SiteSplit, "the site as three instances under {} users", "users", web_site.USERS, _CURVE),
)
