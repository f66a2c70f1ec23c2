SELECT id::text, host::text, coalesce(file::text, ''), coalesce(left(record, %(longest)s + 1), ''),
    coalesce(boots::text[], '{}')
FROM tare.campaign WHERE host::text = %(host)s ORDER BY created DESC LIMIT %(most)s
