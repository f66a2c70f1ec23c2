SELECT to_regclass('tare.schema_version') IS NOT NULL
