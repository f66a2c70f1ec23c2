SELECT platform, workload, metric, mean, logs FROM tare.series
WHERE campaign = %(campaign)s AND way = %(way)s ORDER BY place
