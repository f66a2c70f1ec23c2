-- Two pushes at once: the second one waits for the first.
SELECT pg_advisory_xact_lock(hashtext('tare.catalogue'));
CREATE SCHEMA IF NOT EXISTS tare;
CREATE TABLE IF NOT EXISTS tare.schema_version (
    number integer PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
);
