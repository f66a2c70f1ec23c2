SELECT platform::text, workload::text, metric::text, mean::double precision, logs::double precision[] FROM tare.series
WHERE campaign = %(campaign)s AND way = %(way)s AND cardinality(logs) <= %(longest)s AND mean IS NOT NULL
ORDER BY place LIMIT %(most)s
