SELECT platform, workload, metric, mean, logs FROM tare.series
WHERE campaign = %(campaign)s AND way = %(way)s AND cardinality(logs) <= %(longest)s ORDER BY place LIMIT %(most)s
