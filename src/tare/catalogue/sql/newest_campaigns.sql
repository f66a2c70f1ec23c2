SELECT DISTINCT ON (host) id::text, coalesce(host::text, ''), coalesce(file::text, ''),
    coalesce(left(record, %(longest)s + 1), ''), coalesce(boots::text[], '{}')
FROM tare.campaign ORDER BY host, created DESC LIMIT %(most)s
