INSERT INTO tare.schema_version (number) VALUES (%(number)s)
