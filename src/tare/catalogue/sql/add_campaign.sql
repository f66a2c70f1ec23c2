WITH known AS (
    INSERT INTO tare.host (name) VALUES (%(host)s) ON CONFLICT DO NOTHING
)
INSERT INTO tare.campaign (
    id, host, file, created, seconds, status, profile, baseline, design, blocks, trials, tare_version, pushed_by, boots,
    record
) VALUES (
    %(id)s, %(host)s, %(file)s, to_timestamp(%(created)s), %(seconds)s, %(status)s, %(profile)s, %(baseline)s,
    %(design)s, %(blocks)s, %(trials)s, %(tare_version)s, %(pushed_by)s, %(boots)s, %(record)s
)
