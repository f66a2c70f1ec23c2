SELECT id, host, file, left(record, %(longest)s + 1), boots
FROM tare.campaign WHERE host = %(host)s ORDER BY created DESC LIMIT %(most)s
