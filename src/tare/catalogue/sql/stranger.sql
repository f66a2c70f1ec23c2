-- Who owns a part of the catalogue without being a superuser, where the connection's role is one.
SELECT pg_get_userbyid(owner) FROM (
    SELECT nspowner AS owner FROM pg_namespace WHERE nspname = 'tare'
    UNION
    SELECT relowner FROM pg_class JOIN pg_namespace AS space ON space.oid = relnamespace WHERE nspname = 'tare'
) AS owners JOIN pg_roles ON pg_roles.oid = owner
WHERE NOT rolsuper AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) LIMIT 1
