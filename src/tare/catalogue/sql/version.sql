SELECT coalesce(max(number), 0) FROM tare.schema_version
