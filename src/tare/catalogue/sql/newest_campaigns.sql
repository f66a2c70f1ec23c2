SELECT DISTINCT ON (host) id, host, file, record, boots FROM tare.campaign ORDER BY host, created DESC LIMIT %(most)s
