"""The site of `site`, each of its four servers in an instance of its own, all of one platform.

That is how it is deployed where a service is a container or a machine. What it costs beside `site`, on the same
platform, is the way between the instances: the platform's own network carries each question to cache and database, and
each page from PHP to nginx. Of what the baseline has between them, two sockets of one host, nothing is in the way.

All instances share the campaign's CPUs, and each has its memory limit; settings are those of `site`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError
from tare.model import Family
from tare.workloads.apart import SplitWorkload
from tare.workloads.applications import levels, serving, site
from tare.workloads.base import Level, Params, RunPlan, Surroundings


class SiteSplit(SplitWorkload):
    """Parameters: those of `site`."""

    name = "site-split"
    title = "the site as four instances, each with a server, under 20 users"
    family = Family.APPLICATION
    inner = site.Site()
    metrics = inner.metrics
    work_unit = inner.work_unit
    packages = inner.packages
    layer = inner.layer
    parts = ("database", "cache", "application server", "web server")
    profiles: ClassVar[Mapping[str, Params]] = inner.profiles

    def plans(self, params: Params, around: Sequence[Surroundings]) -> Sequence[RunPlan]:
        database, cache, php, web = around
        where = [serving.place(self.name, each) for each in around]
        limit_s = site.servers_limit_s(params)
        at_database, at_cache, at_php, at_web = where
        mariadb = site.database(database, f"--port={at_database.inside}", f"--bind-address={at_database.listen}")
        memcached = site.memcached(cache, "-l", at_cache.listen, "-p", str(at_cache.inside))
        found = f"host={_peer(database)};port={at_database.inside}"
        php_settings = site.php_settings(
            f"{at_php.listen}:{at_php.inside}", php, found, f"{_peer(cache)}:{at_cache.inside}"
        )
        return (
            RunPlan(
                measures=(),
                prepare=(site.seeded(params, database),),
                servers=(serving.server(mariadb, at_database, time_limit_s=limit_s),),
            ),
            RunPlan(measures=(), servers=(serving.server(memcached, at_cache, time_limit_s=limit_s),)),
            RunPlan(
                measures=(),
                prepare=(site.pages("index.php"), php_settings),
                servers=(serving.server(site.PHP, at_php, time_limit_s=limit_s),),
            ),
            RunPlan(
                prepare=(site.pages("site.css"), site.web_settings(at_web, web, f"{_peer(php)}:{at_php.inside}")),
                servers=(site.web(at_web, limit_s=limit_s),),
                measures=(site.load(params, at_web),),
            ),
        )


def _peer(around: Surroundings) -> str:
    """Where the others reach an instance. Raises `HostError` where they do not."""
    if around.among is None:
        raise HostError(
            "the site's instances cannot reach each other: on this platform they have no addresses of their own",
            fix="leave out site-split on this platform",
        )
    return around.among


_CURVE = Level("site-split-users", 0, "users", "successes", "p99", 500.0)
WORKLOADS = (
    SiteSplit(),
    *levels.levels(SiteSplit, "the site as four instances under {} users", "users", site.USERS, _CURVE),
)
