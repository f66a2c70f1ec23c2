SELECT host, count(*) AS campaigns FROM tare.campaign GROUP BY host ORDER BY host LIMIT %(most)s
