SELECT id, host, file, record, boots FROM tare.campaign WHERE host = %(host)s ORDER BY created DESC LIMIT %(most)s
