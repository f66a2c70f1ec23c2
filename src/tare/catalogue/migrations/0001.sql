-- The catalogue's first tables. A campaign's figures go with it.
CREATE TABLE tare.host (
    name text PRIMARY KEY CHECK (name <> '')
);

CREATE TABLE tare.campaign (
    id text PRIMARY KEY,
    host text NOT NULL REFERENCES tare.host (name),
    file text NOT NULL,
    created timestamptz NOT NULL,
    seconds double precision NOT NULL,  -- of work
    status text NOT NULL,
    profile text NOT NULL,
    baseline text NOT NULL,
    design text NOT NULL,
    blocks integer NOT NULL,
    trials integer NOT NULL,
    tare_version text NOT NULL,
    pushed timestamptz NOT NULL DEFAULT now(),
    pushed_by text NOT NULL,  -- the version of tare
    boots text[] NOT NULL,  -- ids of the kernel's boots in which it was measured
    record text NOT NULL  -- JSON, as the file has it
);
CREATE INDEX campaign_of_host ON tare.campaign (host, created);

-- Of the host as the campaign found it: cpu, microcode, kernel, thp, governor, virtualization ...
CREATE TABLE tare.fact (
    campaign text NOT NULL REFERENCES tare.campaign (id) ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (campaign, name)
);

CREATE TABLE tare.platform (
    campaign text NOT NULL REFERENCES tare.campaign (id) ON DELETE CASCADE,
    name text NOT NULL,
    title text NOT NULL,
    version text NOT NULL,
    PRIMARY KEY (campaign, name)
);

-- The columns of `tare export --table results` (docs/exports.md).
CREATE TABLE tare.figure (
    campaign text NOT NULL REFERENCES tare.campaign (id) ON DELETE CASCADE,
    workload text NOT NULL,
    family text NOT NULL,
    metric text NOT NULL,
    headline boolean NOT NULL,
    unit text NOT NULL,
    direction text NOT NULL,
    baseline text NOT NULL,
    margin_percent double precision,
    platform text NOT NULL,
    n_blocks bigint,
    n_ok bigint,
    n_failed bigint,
    n_unsupported bigint,
    n_contaminated bigint,
    mean double precision,
    sd double precision,
    median double precision,
    ratio double precision,
    ratio_low double precision,
    ratio_high double precision,
    op_percent double precision,
    op_low_percent double precision,
    op_high_percent double precision,
    times double precision,
    times_low double precision,
    times_high double precision,
    interval_level double precision,
    whole_blocks boolean,
    value double precision,
    bound text,
    bound_low double precision,
    bound_high double precision,
    amount double precision,
    amount_low double precision,
    amount_high double precision,
    amount_unit text,
    verdict text,
    verdict_reason text,
    verdict_text text,
    p_adjusted double precision,
    survives_holm boolean,
    PRIMARY KEY (campaign, platform, workload, metric)
);
CREATE INDEX figure_by_name ON tare.figure (platform, workload, metric);

-- A log a block: what `tare history` and `tare fleet report` are made of.
CREATE TABLE tare.series (
    campaign text NOT NULL REFERENCES tare.campaign (id) ON DELETE CASCADE,
    platform text NOT NULL,
    workload text NOT NULL,
    metric text NOT NULL,
    place integer NOT NULL,  -- among those of the file
    way text NOT NULL CHECK (way IN ('relative', 'absolute')),  -- ratios to the baseline, or the figures themselves
    mean double precision NOT NULL,
    logs double precision[] NOT NULL,
    PRIMARY KEY (campaign, platform, workload, metric, way)
);
