SELECT coalesce(max(number), 0)::integer FROM tare.schema_version
