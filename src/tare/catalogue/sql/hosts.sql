SELECT host::text, count(*) AS campaigns FROM tare.campaign WHERE host IS NOT NULL GROUP BY host ORDER BY host
LIMIT %(most)s
