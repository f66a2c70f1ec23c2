SELECT DISTINCT ON (host) id, host, file, left(record, %(longest)s + 1), boots
FROM tare.campaign ORDER BY host, created DESC LIMIT %(most)s
